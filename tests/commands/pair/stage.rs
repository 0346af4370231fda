//! A hermetic place to run flashrig in: a project with one tiny task, a home, a cache and a
//! temporary folder of its own, and nothing of the environment that the tests run in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::pair::agent::PLAY;
use crate::support::machine::alive;

pub const TASK: &str = r#"schema = "flashrig.task/1"
title = "Say hello"
fixture = "tiny"
needs = ["sh", "grep"]
time_limit = "2m"
protected = ["guard/**"]

[[checks]]
name = "greets"
run = "grep -q hello greeting.txt"
time_limit = "1m"
before = "fail"

[[checks]]
name = "guard"
run = "sh guard/check.sh"
time_limit = "1m"
before = "pass"
"#;

const FIXTURE: &str = r#"schema = "flashrig.fixture/1"
title = "A greeting"

[[commits]]
author = "Ann"
email = "ann@tiny.example"
date = "2024-01-01T10:00:00Z"
message = "Begin"
files = ["**"]
"#;

const SOLUTION: &str = "\
diff --git a/greeting.txt b/greeting.txt
--- a/greeting.txt
+++ b/greeting.txt
@@ -1 +1 @@
-nothing
+hello
";

const WALKTHROUGH: &str = r#"schema = "flashrig.walkthrough/1"

[[steps]]
do = "edit"
path = "greeting.txt"
old = "nothing"
new = "hello"

[[steps]]
do = "say"
text = "It says hello now."
"#;

/// Every `--sandbox` that works here.
pub fn sandboxes() -> Vec<&'static str> {
    let probe = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"])
        .args([
            "--unshare-pid",
            "--as-pid-1",
            "--",
            "/bin/sh",
            "-c",
            "exit 0",
        ])
        .output();
    if probe.is_ok_and(|output| output.status.success()) {
        vec!["none", "bubblewrap"]
    } else {
        eprintln!("without bubblewrap, which does not work here");
        vec!["none"]
    }
}

/// An agent of the project: its limits and its steps.
pub struct Agent<'a> {
    pub name: &'a str,
    pub steps: &'a [&'a str],
    pub first_request_limit: &'a str,
    pub idle_limit: &'a str,
    pub exit_grace: &'a str,
    pub end_required: bool,
}

impl Default for Agent<'_> {
    fn default() -> Self {
        Self {
            name: "mine",
            steps: &[],
            first_request_limit: "1m",
            idle_limit: "1m",
            exit_grace: "1m",
            end_required: false,
        }
    }
}

/// The steps of an agent that does its task.
pub const GOOD: [&str; 3] = ["ask", "write greeting.txt hello", "result"];

pub struct Stage {
    dir: TempDir,
}

impl Stage {
    pub fn new() -> Self {
        let stage = Self {
            dir: TempDir::new().unwrap(),
        };
        for folder in ["home", "cache", "tmp", "project"] {
            fs::create_dir(stage.dir.path().join(folder)).unwrap();
        }
        for (path, text) in [
            ("tasks/tiny/task.toml", TASK),
            (
                "tasks/tiny/prompt.md",
                "Make the file greeting.txt say hello.\n",
            ),
            ("tasks/tiny/solution.patch", SOLUTION),
            ("tasks/tiny/walkthrough.toml", WALKTHROUGH),
            ("fixtures/tiny/fixture.toml", FIXTURE),
            ("fixtures/tiny/tree/greeting.txt", "nothing\n"),
            (
                "fixtures/tiny/tree/guard/check.sh",
                "test -f greeting.txt\n",
            ),
        ] {
            stage.write(path, text);
        }
        stage
    }

    /// A stage with the agent `mine` that takes these steps.
    pub fn with(steps: &[&str]) -> Self {
        let stage = Self::new();
        stage.agent(&Agent {
            steps,
            ..Agent::default()
        });
        stage
    }

    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) {
        let file = self.project().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Describes an agent in the project.
    pub fn agent(&self, agent: &Agent<'_>) {
        let me = std::env::current_exe().unwrap();
        let args: Vec<&str> = PLAY.iter().chain(agent.steps).copied().collect();
        let text = format!(
            r#"schema = "flashrig.agent/1"
title = "scripted"
dialect = "any"
fallback_context = 8192

[program]
name = {program}

[launch]
args = {args}
first_request_limit = "{first}"
idle_limit = "{idle}"
exit_grace = "{grace}"

[env]
FLASHRIG_BASE_URL = "{{base_url}}"
FLASHRIG_TOKEN = "{{token}}"
FLASHRIG_MODEL = "{{model}}"
FLASHRIG_PROMPT = "{{prompt}}"

[transcript]
format = "json-lines"
end_required = {end_required}

[[transcript.events]]
means = "end"
where = {{ "/type" = "result" }}

[[transcript.events]]
means = "error"
where = {{ "/type" = "error" }}
detail = ["/message"]

[[transcript.events]]
means = "turn"
where = {{ "/type" = "turn" }}
"#,
            program = toml_text(&me.display().to_string()),
            args = serde_json::to_string(&args).unwrap(),
            first = agent.first_request_limit,
            idle = agent.idle_limit,
            grace = agent.exit_grace,
            end_required = agent.end_required,
        );
        self.write(&format!("harness/agents/{}.toml", agent.name), &text);
    }

    /// Makes an agent of the project one that is known to speak OpenAI chat completions, so that
    /// the server is warmed up for it.
    pub fn speak_openai(&self, name: &str) {
        let path = format!("harness/agents/{name}.toml");
        let text = fs::read_to_string(self.project().join(&path)).unwrap();
        self.write(&path, &text.replace("\"any\"", "\"openai_chat\""));
    }

    /// flashrig in the project, with a hermetic environment.
    pub fn flashrig(&self, args: &[&str]) -> Command {
        let folder = |name: &str| self.dir.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", folder("home"))
            .env("FLASHRIG_CACHE", folder("cache"))
            .env("TMPDIR", folder("tmp"))
            // Tests run beside each other.
            .env("FLASHRIG_FOREIGN_LOAD", "accept")
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs flashrig to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.flashrig(args).output().unwrap())
    }

    /// `flashrig pair --json` on the tiny task with the agent `mine`, on a fast embedded server;
    /// checks that it left nothing behind.
    pub fn pair(&self, more: &[&str]) -> Ran {
        let mut args = vec!["pair", "--json", "--agent", "mine"];
        if !more.contains(&"--task") {
            args.extend(["--task", "tiny"]);
        }
        if !more.contains(&"--server") && !more.contains(&"--speed") {
            args.extend(["--speed", "50"]);
        }
        args.extend(more);
        let ran = self.run(&args);
        self.nothing_left();
        ran
    }

    /// No process, no scratch folder.
    pub fn nothing_left(&self) {
        let folder = self.dir.path();
        wait_until("no process is left", || alive(folder).is_empty());
        assert_eq!(names(&folder.join("tmp")), Vec::<String>::new());
    }

    /// The folder of the only run.
    pub fn results(&self) -> PathBuf {
        let results = self.project().join("results");
        let runs = names(&results);
        assert_eq!(runs.len(), 1, "{runs:?}");
        results.join(&runs[0])
    }

    /// A text file of the only run.
    pub fn result_text(&self, path: &str) -> String {
        let file = self.results().join(path);
        fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    }
}

/// The names in a folder, sorted; none when it does not exist.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn toml_text(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The record on standard output.
    pub fn record(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.stdout, self.stderr))
    }

    /// All sessions of all arms of all rounds.
    pub fn sessions(&self) -> Vec<Value> {
        self.arms()
            .iter()
            .flat_map(|arm| arm["sessions"].as_array().unwrap().clone())
            .collect()
    }

    /// All arms of all rounds, in the order in which they ran.
    pub fn arms(&self) -> Vec<Value> {
        let record = self.record();
        let rounds = record["rounds"].as_array().unwrap();
        rounds
            .iter()
            .flat_map(|round| round["arms"].as_array().unwrap().clone())
            .collect()
    }

    /// Every session, both arms of one round of one task, has this status; its details.
    pub fn both(&self, status: &str) -> Vec<Value> {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 2, "{self:#?}");
        for session in &sessions {
            assert_eq!(session["status"], status, "{session:#}");
        }
        sessions
    }

    /// The verdict's functional part.
    pub fn functional(&self) -> String {
        self.record()["verdict"]["functional"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Everything that makes the run fail, in words.
    pub fn reasons(&self) -> String {
        self.record()["verdict"]["reasons"].to_string()
    }
}

/// A field's text, or the sentence of a fact.
pub fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    let value = &value[field];
    value.as_str().or(value["text"].as_str()).unwrap()
}

/// A field's number.
pub fn number(value: &Value, field: &str) -> f64 {
    value[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} is no number in {value:#}"))
}
