//! A project whose tasks are the built-in ones but for their checks, which are over at once, and
//! whose agent applies the reference solution: what is left is flashrig's own time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The built-in tasks, one for each built-in fixture.
pub const TASKS: [&str; 2] = ["fix-bug", "add-flag"];

pub struct Project {
    dir: TempDir,
}

impl Project {
    pub fn make() -> Self {
        let dir = TempDir::new().unwrap();
        let agent = dir.path().join("agent");
        fs::create_dir(&agent).unwrap();
        for task in TASKS {
            let ours = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tasks")
                .join(task);
            let theirs = dir.path().join("tasks").join(task);
            copy(&ours, &theirs);
            quick(&theirs.join("task.toml"));
            fs::copy(
                ours.join("solution.patch"),
                agent.join(format!("{task}.patch")),
            )
            .unwrap();
        }
        let script = agent.join("agent");
        // Only the right one of the patches applies.
        fs::write(
            &script,
            "#!/bin/sh\nfor patch in \"${0%/*}\"/*.patch; do\n  git apply \"$patch\" 2>/dev/null && exit 0\n\
             done\nexit 1\n",
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn agent(&self) -> PathBuf {
        self.dir.path().join("agent/agent")
    }
}

/// Replaces every check's command by `true`.
fn quick(file: &Path) {
    let mut task: toml::Table = toml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for check in task["checks"].as_array_mut().unwrap() {
        let check = check.as_table_mut().unwrap();
        check.insert("run".into(), "true".into());
        check.remove("must_print");
    }
    fs::write(file, toml::to_string(&task).unwrap()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let dest = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &dest);
        } else {
            fs::copy(entry.path(), dest).unwrap();
        }
    }
}
