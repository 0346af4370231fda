//! Lists the built-in profiles.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use flashrig_harness::HARNESS;

fn main() {
    for folder in ["agents", "servers"] {
        println!("{folder}");
        let files = HARNESS
            .get_dir(folder)
            .into_iter()
            .flat_map(|dir| dir.files());
        for file in files {
            println!(
                "  {} ({} bytes)",
                file.path().display(),
                file.contents().len()
            );
        }
    }
}
