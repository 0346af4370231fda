//! A small sound project to break in one place at a time.

use std::path::Path;

use flashrig::task::Library;

pub const TASK: &str = r#"schema = "flashrig.task/1"
title = "Say hello"
fixture = "hello"
needs = ["cargo"]
time_limit = "10m"
protected = ["tests/**"]

[[hidden]]
from = "hidden/check.sh"
to = "tests/check.sh"

[[checks]]
name = "hello"
run = "sh tests/check.sh"
time_limit = "1m30s"
before = "fail"
must_print = '^hello\b'

[diff]
max_files = 2
max_lines = 20

[[cheats]]
name = "lie"
patch = "cheats/lie.patch"
"#;

const FIXTURE: &str = r#"schema = "flashrig.fixture/1"
title = "A greeting"
executable = ["run.sh"]

[[commits]]
author = "Ann"
email = "ann@hello.example"
date = "2024-01-01T10:00:00Z"
message = "Begin"
files = ["run.sh", ".gitignore"]
overlay = "history/01"

[[commits]]
author = "Ann"
email = "ann@hello.example"
date = "2024-01-02T10:00:00Z"
message = "Greet"
files = ["src/*"]
delete = ["OLD"]
"#;

pub const WALKTHROUGH: &str = r#"schema = "flashrig.walkthrough/1"

[[steps]]
do = "read"
path = "src/hello.txt"

[[steps]]
do = "edit"
path = "src/hello.txt"
old = "nothing"
new = "hello"

[[steps]]
do = "say"
text = "Done."
"#;

const PATCH: &str = "\
diff --git a/src/hello.txt b/src/hello.txt
--- a/src/hello.txt
+++ b/src/hello.txt
@@ -1 +1 @@
-nothing, nothing at all
+hello, nothing at all
";

/// A project with one sound task, `greet`, on one sound fixture, `hello`.
pub struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    pub fn new() -> Self {
        let project = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (path, text) in [
            ("tasks/greet/task.toml", TASK),
            ("tasks/greet/prompt.md", "\nGreet the world.\n"),
            ("tasks/greet/solution.patch", PATCH),
            ("tasks/greet/cheats/lie.patch", PATCH),
            ("tasks/greet/hidden/check.sh", "cat src/hello.txt\n"),
            (
                "tasks/greet/walkthrough.toml",
                &WALKTHROUGH.replace("\"nothing\"", "\"nothing,\""),
            ),
            ("fixtures/hello/fixture.toml", FIXTURE),
            ("fixtures/hello/tree/run.sh", "cat src/hello.txt\n"),
            ("fixtures/hello/tree/.gitignore.in", "/target\n"),
            (
                "fixtures/hello/tree/src/hello.txt",
                "nothing, nothing at all\n",
            ),
            ("fixtures/hello/history/01/src/hello.txt", "\n"),
            ("fixtures/hello/history/01/OLD", "\n"),
        ] {
            project.write(path, text);
        }
        project
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn library(&self) -> Library {
        Library::new(Some(self.path()))
    }

    /// What is said of the task, with the project's folder left out.
    pub fn error(&self) -> String {
        let error = self
            .library()
            .load("greet")
            .expect_err("the task was loaded");
        error
            .to_string()
            .replace(&format!("{}/", self.path().display()), "")
    }
}

/// The error after one replacement in one file of a sound project.
fn error_when(file: &str, old: &str, new: &str) -> String {
    let project = Project::new();
    let text = std::fs::read_to_string(project.path().join(file)).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{file}: {old}");
    project.write(file, &text.replace(old, new));
    project.error()
}

pub fn task_error(old: &str, new: &str) -> String {
    error_when("tasks/greet/task.toml", old, new)
}

pub fn fixture_error(old: &str, new: &str) -> String {
    error_when("fixtures/hello/fixture.toml", old, new)
}

pub fn walkthrough_error(old: &str, new: &str) -> String {
    error_when("tasks/greet/walkthrough.toml", old, new)
}
