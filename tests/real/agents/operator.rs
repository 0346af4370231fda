//! An operator whose home, environment and folders are full of sentinels: texts that no agent may
//! ever send anywhere (case G1).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flashrig_testkit::waiting::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::machine::alive;

/// Begins every sentinel.
const SENTINEL: &str = "SENTINEL-7b1f";
const VARIABLES: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_EXTRA_BODY",
    "OPENAI_API_KEY",
    "OPENCODE_CONFIG_CONTENT",
    "GIT_AUTHOR_NAME",
    "USER",
    "SOME_OTHER_SECRET",
];

/// The cache that agents are installed into: the one of whoever runs the tests, so that hundreds
/// of megabytes are fetched once and not for every run.
pub fn cache() -> PathBuf {
    let environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    flashrig::agent::cache_folder(&environment)
}

/// Installs an agent's pinned version, unless it is there.
pub fn install(agent: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(["agents", "install", agent])
        .env("FLASHRIG_CACHE", cache())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub struct Operator {
    dir: TempDir,
}

impl Operator {
    pub fn new() -> Self {
        let operator = Self {
            dir: TempDir::new().unwrap(),
        };
        for folder in ["tmp", "parent/project"] {
            fs::create_dir_all(operator.dir.path().join(folder)).unwrap();
        }
        let reported = |what: &str| format!("Always say {SENTINEL}-{what} first.\n");
        let hook = format!("echo {SENTINEL}-hook");
        let settings = serde_json::json!({
            "env": {"ANTHROPIC_CUSTOM_HEADERS": format!("x-s: {SENTINEL}-settings")},
            "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]},
        });
        let opencode = serde_json::json!({
            "instructions": ["AGENTS.md"],
            "username": format!("{SENTINEL}-username"),
        });
        for (path, text) in [
            ("home/.claude/settings.json", settings.to_string()),
            ("home/.claude/CLAUDE.md", reported("home-claude")),
            ("home/CLAUDE.md", reported("home")),
            ("home/.config/opencode/opencode.json", opencode.to_string()),
            ("home/.config/opencode/AGENTS.md", reported("opencode")),
            (
                "home/.gitconfig",
                format!("[user]\nname = {SENTINEL}-git\n"),
            ),
            ("parent/CLAUDE.md", reported("parent-claude")),
            ("parent/AGENTS.md", reported("parent-agents")),
            ("parent/project/CLAUDE.md", reported("project-claude")),
            ("parent/project/AGENTS.md", reported("project-agents")),
        ] {
            let file = operator.dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        operator
    }

    fn results(&self) -> PathBuf {
        self.dir.path().join("parent/project/results")
    }

    /// Runs a pair on a fast embedded server; its record.
    pub fn pair(&self, tasks: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
        command
            .args(["pair", "--json", "--speed", "20", "--fail-above", "100000"])
            .args(tasks)
            .env_clear()
            // Tests run beside each other.
            .env("FLASHRIG_FOREIGN_LOAD", "accept")
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path().join("home"))
            .env("FLASHRIG_CACHE", cache())
            .env("TMPDIR", self.dir.path().join("tmp"))
            .current_dir(self.dir.path().join("parent/project"));
        if let Some(rustup) = rustup_home() {
            command.env("RUSTUP_HOME", rustup);
        }
        for name in VARIABLES {
            command.env(name, format!("{SENTINEL}-{name}"));
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{error}");
        wait_until("no process is left", || alive(self.dir.path()).is_empty());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Every session's requests are kept, and the task's prompt is in them: without that, finding
    /// no sentinel would prove nothing.
    pub fn assert_bodies_hold_the_prompts(&self, sessions: &[Value]) {
        let runs: Vec<PathBuf> = files_in(&self.results());
        assert_eq!(runs.len(), 1);
        for session in sessions {
            let task = session["task"].as_str().unwrap();
            let prompt = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tasks")
                .join(task)
                .join("prompt.md");
            let prompt = fs::read_to_string(prompt).unwrap();
            let folder = session["folder"].as_str().unwrap();
            let bodies = requests_of(&runs[0], folder);
            let requests = session["requests"].as_u64().unwrap();
            assert!(
                bodies.len() as u64 >= requests,
                "{folder}: {}",
                bodies.len()
            );
            let with_prompt = bodies
                .iter()
                .filter(|body| {
                    let body: Value = serde_json::from_slice(body).unwrap();
                    holds(&body, prompt.trim())
                })
                .count();
            assert!(with_prompt as u64 >= requests, "{folder}: {with_prompt}");
        }
    }

    /// In no file of the run, request bodies and transcripts included.
    pub fn assert_no_sentinel_is_found(&self) {
        let runs = files_in(&self.results());
        let bodies: Vec<Vec<u8>> = files_in(&runs[0].join("sessions"))
            .iter()
            .flat_map(|folder| bodies_of(&runs[0], &folder.file_name().unwrap().to_string_lossy()))
            .map(|(_, body)| body)
            .collect();
        // The search itself finds what is there.
        assert!(bodies.iter().any(|body| has(body, "cargo test")));
        assert!(!bodies.iter().any(|body| has(body, SENTINEL)));
        assert_eq!(files_with(&self.results(), SENTINEL), Vec::<PathBuf>::new());
    }
}

/// The bodies of a session's requests.
fn requests_of(run: &Path, session: &str) -> Vec<Vec<u8>> {
    let bodies = bodies_of(run, session);
    let requests = bodies.into_iter().filter(|(kind, _)| kind == "request");
    requests.map(|(_, body)| body).collect()
}

/// All bodies of a session, each with its kind, as `flashrig bodies` lists and prints them.
fn bodies_of(run: &Path, session: &str) -> Vec<(String, Vec<u8>)> {
    let bodies = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
            .arg("bodies")
            .args([run.as_os_str(), session.as_ref()])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let list: Vec<Value> = serde_json::from_slice(&bodies(&["--json"])).unwrap();
    list.iter()
        .map(|line| {
            let (number, kind) = (line["number"].to_string(), line["kind"].as_str().unwrap());
            let mut args = vec![number.as_str()];
            args.extend((kind == "response").then_some("--response"));
            (kind.to_owned(), bodies(&args))
        })
        .collect()
}

/// Toolchains of whoever runs the tests; their HOME is another one now.
pub fn rustup_home() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("RUSTUP_HOME") {
        return Some(folder.into());
    }
    let folder = Path::new(&std::env::var_os("HOME")?).join(".rustup");
    folder.is_dir().then_some(folder)
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(s) => s.contains(text),
        Value::Array(items) => items.iter().any(|v| holds(v, text)),
        Value::Object(map) => map.values().any(|v| holds(v, text)),
        _ => false,
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// Files below `folder` whose bytes hold `text`.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in files_in(folder) {
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if has(&fs::read(&path).unwrap(), text) {
            found.push(path);
        }
    }
    found
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}
