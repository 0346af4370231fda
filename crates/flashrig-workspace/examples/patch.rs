//! Makes a workspace, changes a file in it, and reads the change back as a patch.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_workspace::{Base, Fixture, FixtureCommit, FixtureFile, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let source = Source::Fixture(Fixture {
        name: "greeting".into(),
        title: "A greeting".into(),
        commits: vec![FixtureCommit {
            author: "example".into(),
            email: "example@example.org".into(),
            time: 1_700_000_000,
            message: "first\n".into(),
            files: vec![FixtureFile {
                path: "greeting.txt".into(),
                bytes: b"hello\n".to_vec(),
                executable: false,
            }],
        }],
    });
    let base = Base::make(&source, &folder.path().join("base"))?;
    let workspace = folder.path().join("workspace");
    base.copy_to(&workspace)?;
    std::fs::write(workspace.join("greeting.txt"), "hello, world\n")?;
    print!("{}", base.patch(&workspace)?.text);
    Ok(())
}
