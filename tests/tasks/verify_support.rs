//! A small task in shell, and a runner of plain processes: the real one, with sandbox and
//! supervision, lives in the process room.

use std::future::Future;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use flashrig::task::{
    Before, Cheat, Check, DiffLimit, Fixture, FixtureCommit, FixtureFile, HiddenFile, Source, Task,
};
use flashrig::verify::{CheckExit, CheckRun, CheckRunner};
use globset::{Glob, GlobSetBuilder};

pub struct Plain;

impl CheckRunner for Plain {
    fn run<'a>(
        &'a self,
        argv: &'a [String],
        dir: &'a Path,
        limit: Duration,
    ) -> Pin<Box<dyn Future<Output = CheckRun> + Send + 'a>> {
        Box::pin(async move {
            let start = Instant::now();
            let mut command = tokio::process::Command::new(&argv[0]);
            command
                .args(&argv[1..])
                .current_dir(dir)
                .stdin(Stdio::null())
                .kill_on_drop(true);
            let ended = tokio::time::timeout(limit, command.output()).await;
            let (exit, output) = match ended {
                Err(_) => (CheckExit::TimedOut, Vec::new()),
                Ok(Err(error)) => (CheckExit::NotStarted(error.to_string()), Vec::new()),
                Ok(Ok(output)) => {
                    let exit = match (output.status.code(), output.status.signal()) {
                        (Some(code), _) => CheckExit::Exited(code),
                        (None, signal) => CheckExit::Signalled(signal.unwrap()),
                    };
                    (exit, [output.stdout, output.stderr].concat())
                }
            };
            CheckRun {
                exit,
                output,
                dropped_bytes: 0,
                duration: start.elapsed(),
            }
        })
    }
}

fn file(path: &str, text: &str) -> FixtureFile {
    FixtureFile {
        path: path.into(),
        bytes: text.into(),
        executable: false,
    }
}

pub fn check(name: &str, run: &[&str], before: Before, must_print: Option<&str>) -> Check {
    Check {
        name: name.into(),
        run: run.iter().map(|arg| (*arg).to_owned()).collect(),
        time_limit: Duration::from_secs(10),
        before,
        must_print: must_print.map(|pattern| regex::Regex::new(pattern).unwrap()),
    }
}

pub fn globs(patterns: &[&str]) -> (globset::GlobSet, Vec<String>) {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).unwrap());
    }
    (
        set.build().unwrap(),
        patterns.iter().map(|p| (*p).to_owned()).collect(),
    )
}

/// `add.sh` subtracts. The visible test asks for 0 + 0, the hidden one for 2 + 3.
pub fn task() -> Task {
    let (protected, protected_globs) = globs(&["tests/**"]);
    let commit = FixtureCommit {
        author: "Ada".into(),
        email: "ada@example.org".into(),
        time: 1_700_000_000,
        message: "start\n".into(),
        files: vec![
            file("add.sh", "echo $(($1 - $2))\n"),
            file("README.md", "# Adder\n"),
            file(
                "tests/visible.sh",
                "test \"$(sh add.sh 0 0)\" = 0 && echo visible ok\n",
            ),
        ],
    };
    Task {
        folder: None,
        name: "fix-add".into(),
        title: "Make it add".into(),
        prompt: "add.sh must add".into(),
        source: Source::Fixture(Fixture {
            name: "adder".into(),
            title: "An adder".into(),
            commits: vec![commit],
        }),
        needs: vec!["sh".into()],
        time_limit: Duration::from_secs(60),
        protected,
        protected_globs,
        hidden: vec![HiddenFile {
            to: "tests/hidden.sh".into(),
            bytes: b"test \"$(sh add.sh 2 3)\" = 5 && echo hidden ok\n".to_vec(),
        }],
        checks: vec![
            check(
                "visible",
                &["sh", "tests/visible.sh"],
                Before::Pass,
                Some("visible ok"),
            ),
            check(
                "hidden",
                &["sh", "tests/hidden.sh"],
                Before::Fail,
                Some("hidden ok"),
            ),
        ],
        diff_limit: DiffLimit {
            files: Some(2),
            lines: Some(10),
        },
        solution: edit("add.sh", "echo $(($1 - $2))", "echo $(($1 + $2))"),
        cheats: vec![
            Cheat {
                name: "constant".into(),
                patch: edit("add.sh", "echo $(($1 - $2))", "echo 0"),
            },
            Cheat {
                name: "delete-test".into(),
                patch: "diff --git a/tests/visible.sh b/tests/visible.sh\n\
                        deleted file mode 100644\n\
                        --- a/tests/visible.sh\n\
                        +++ /dev/null\n\
                        @@ -1 +0,0 @@\n\
                        -test \"$(sh add.sh 0 0)\" = 0 && echo visible ok\n"
                    .into(),
            },
        ],
        walkthrough: None,
    }
}

/// The diff that replaces a file's only line.
pub fn edit(path: &str, old: &str, new: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
    )
}
