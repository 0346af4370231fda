//! The standing gateway with everyday agents: started by hand, beside a server started by hand.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_until;
use serde_json::json;
use tempfile::TempDir;

use crate::agents::operator::{cache, install, rustup_home};
use crate::support::http::fetch;
use crate::support::serving::Serving;
use flashrig_testkit::prometheus::Metrics;

const MODEL: &str = "flashrig-sim";

/// An agent as its user starts it: in a folder of theirs, with a home of its own.
fn agent(dir: &Path, name: &str, program: &str, args: &[&str], env: &[(&str, String)]) -> Child {
    let (home, work) = (dir.join(name).join("home"), dir.join(name).join("work"));
    fs::create_dir_all(&home).unwrap();
    copy(Path::new("fixtures/worklog/tree"), &work);
    let output = |stream: &str| fs::File::create(dir.join(name).join(stream)).unwrap();
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(&work)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", &home)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output("stdout"))
        .stderr(output("stderr"));
    if let Some(rustup) = rustup_home() {
        command.env("RUSTUP_HOME", rustup);
    }
    command.spawn().unwrap()
}

/// Copies a fixture's tree; the suffix `.in` is cargo's doing and dropped.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let target = to.join(name.strip_suffix(".in").unwrap_or(&name));
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The program of an agent that flashrig has installed.
fn installed(agent: &str) -> String {
    let folders = fs::read_dir(cache().join("agents")).unwrap().flatten();
    let program = |folder: &Path| folder.join("node_modules/.bin").join(agent);
    let found = folders
        .map(|folder| program(&folder.path()))
        .find(|program| program.exists());
    found.unwrap().into_os_string().into_string().unwrap()
}

/// Claude Code and OpenCode at the same time, each named by its base address.
pub fn both_at_once() {
    for agent in ["claude", "opencode"] {
        install(agent);
    }
    let dir = TempDir::new().unwrap();
    let prompt = fs::read_to_string("tasks/fix-bug/prompt.md").unwrap();
    let sim = Serving::start(["sim", "--listen", "127.0.0.1:0", "--speed", "20"]);
    let log = dir.path().join("log.jsonl");
    let gateway = Serving::start([
        "gateway",
        "--upstream",
        &sim.url(),
        "--listen",
        "127.0.0.1:0",
        "--max-in-flight",
        "2",
        "--order",
        "side-first",
        "--log",
        log.to_str().unwrap(),
    ]);
    let metrics = || {
        let (status, page) = fetch(&gateway.addr, "GET", "/metrics", "");
        assert_eq!(status, 200);
        Metrics::read(&page)
    };

    let config = dir.path().join("opencode.json");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("{}/client/opencode/v1", gateway.url()), "apiKey": "any"},
        "models": {MODEL: {"limit": {"context": 131072, "output": 8192}}},
    });
    let model = format!("here/{MODEL}");
    let settings = json!({
        "provider": {"here": provider}, "model": model, "small_model": model,
        "share": "disabled", "autoupdate": false,
    });
    fs::write(&config, settings.to_string()).unwrap();
    let on = || "1".to_owned();
    let mut opencode = agent(
        dir.path(),
        "opencode",
        &installed("opencode"),
        &["run", "--format", "json", "--auto", &prompt],
        &[
            ("OPENCODE_CONFIG", config.display().to_string()),
            ("OPENCODE_DISABLE_AUTOUPDATE", on()),
            ("OPENCODE_DISABLE_MODELS_FETCH", on()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", on()),
            ("npm_config_offline", "true".to_owned()),
        ],
    );
    // OpenCode takes its time to start: so that both really are there at the same time.
    wait_until("opencode has asked", || {
        assert_eq!(opencode.try_wait().unwrap(), None);
        metrics().of_client("flashrig_requests_total", "opencode") > 0.0
    });
    let mut claude = agent(
        dir.path(),
        "claude",
        &installed("claude"),
        &["-p", &prompt, "--permission-mode", "bypassPermissions"],
        &[
            (
                "CLAUDE_CONFIG_DIR",
                dir.path().join("claude/.claude").display().to_string(),
            ),
            (
                "ANTHROPIC_BASE_URL",
                format!("{}/client/claude", gateway.url()),
            ),
            ("ANTHROPIC_AUTH_TOKEN", "any".to_owned()),
            ("ANTHROPIC_MODEL", MODEL.to_owned()),
            ("ANTHROPIC_DEFAULT_HAIKU_MODEL", MODEL.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", on()),
            ("IS_SANDBOX", on()),
        ],
    );
    for (name, child) in [("claude", &mut claude), ("opencode", &mut opencode)] {
        let said = || fs::read_to_string(dir.path().join(name).join("stderr")).unwrap();
        assert!(child.wait().unwrap().success(), "{name}: {}", said());
        // The scripted solution was played through the agent's own tools.
        let fixed = fs::read_to_string(dir.path().join(name).join("work/src/date.rs")).unwrap();
        let before = fs::read_to_string("fixtures/worklog/tree/src/date.rs").unwrap();
        assert_ne!(fixed, before, "{name} did not do its work");
    }

    let after = metrics();
    for (client, dialect) in [
        ("claude", "anthropic_messages"),
        ("opencode", "openai_chat"),
    ] {
        let labels = [
            ("client", client),
            ("dialect", dialect),
            ("role", "main"),
            ("end", "complete"),
        ];
        let turns = after.get("flashrig_requests_total", &labels).unwrap();
        assert!(turns > 3.0, "{client}: {turns}");
        let own = [("client", client)];
        let tokens = |name| after.get(name, &own).unwrap();
        assert!(tokens("flashrig_cached_tokens_total") > 0.0);
        assert!(tokens("flashrig_input_tokens_total") > tokens("flashrig_cached_tokens_total"));
        assert!(tokens("flashrig_itl_seconds_count") > 0.0);
        assert_eq!(after.of_client("flashrig_refusals_total", client), 0.0);
        assert_eq!(after.get("flashrig_in_flight", &own), Some(0.0));
    }
    gateway.interrupt();
    let (exit, said) = gateway.ended();
    assert_eq!(exit, Some(0), "{said}");
    let lines = fs::read_to_string(&log).unwrap().lines().count();
    let counted = ["claude", "opencode"]
        .map(|client| after.of_client("flashrig_requests_total", client))
        .iter()
        .sum::<f64>();
    assert_eq!(lines as f64, counted);
}
