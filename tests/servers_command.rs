//! `flashrig servers` as it is typed: against the simulated server, and against things that are no
//! servers or half ones.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot get what it needs has failed"
)]

#[path = "support/http.rs"]
mod http;
#[path = "support/serving.rs"]
mod serving;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use flashrig::server::{Library, LogEvent, events};
use http::fetch;
use serde_json::{Value, json};
use serving::Serving;
use tempfile::TempDir;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}

/// `flashrig servers` in `project`, with nothing of the environment that tests run in.
fn servers_in(project: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .arg("servers")
        .args(args)
        .env_clear()
        .current_dir(project)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn servers(args: &[&str]) -> Ran {
    servers_in(TempDir::new().unwrap().path(), args)
}

/// A project with one server profile.
fn project(name: &str, profile: &str) -> TempDir {
    let project = TempDir::new().unwrap();
    let folder = project.path().join("harness/servers");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.toml")), profile).unwrap();
    project
}

/// What a stub does with a request.
enum Reply {
    /// An answer, and the connection's end.
    Whole(String),
    /// The beginning of one, and then nothing for as long as the client stays.
    Begun(String),
}

fn answer(status: &str, content_type: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Whole(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    ))
}

fn no_route() -> Reply {
    answer(
        "404 Not Found",
        "application/json",
        r#"{"error":"no such route"}"#,
    )
}

fn one_model() -> Reply {
    let list = r#"{"data":[{"id":"m","max_model_len":4096}]}"#;
    answer("200 OK", "application/json", list)
}

/// A server that answers by the first line of a request, each connection on its own.
fn stub(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reply = Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || serve(stream.unwrap(), &*reply));
        }
    });
    url
}

fn serve(mut stream: TcpStream, reply: &dyn Fn(&str) -> Reply) {
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    // Bodies end with a brace.
    while !(seen.ends_with(b"}") || seen.starts_with(b"GET") && seen.ends_with(b"\r\n\r\n")) {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(n) => seen.extend_from_slice(&bytes[..n]),
        }
    }
    let head = String::from_utf8_lossy(&seen);
    match reply(head.lines().next().unwrap_or_default()) {
        Reply::Whole(answer) => {
            let _ = stream.write_all(answer.as_bytes());
        }
        Reply::Begun(beginning) => {
            let _ = stream.write_all(beginning.as_bytes());
            // Until the client leaves.
            while matches!(stream.read(&mut bytes), Ok(n) if n > 0) {}
        }
    }
}

#[test]
fn every_profile_is_listed_with_what_it_is_and_where() {
    let listed = servers(&["list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let rows = listed.json();
    let row = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name)
            .unwrap_or_else(|| panic!("{name} is not listed"))
            .clone()
    };
    for name in [
        "mlx-serve",
        "mlx-lm",
        "llama-server",
        "vllm",
        "openai",
        "anthropic",
    ] {
        assert_eq!(row(name)["kind"], "attached", "{name}");
        assert!(row(name)["url"].is_string(), "{name}");
    }
    assert_eq!(row("sim")["kind"], "simulated");
    assert_eq!(row("sim")["url"], Value::Null);
    let text = servers(&["list"]).out;
    assert!(
        text.contains("vLLM (attached, http://127.0.0.1:8000)"),
        "{text}"
    );
}

#[test]
fn a_probe_tells_what_the_server_itself_tells() {
    let sim = Serving::start(["sim", "--listen", "127.0.0.1:0", "--speed", "50"]);
    let probed = servers(&["probe", &sim.url(), "--json"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    let probe = probed.json();
    let ask = |path: &str| -> Value {
        serde_json::from_str(&fetch(&sim.addr, "GET", path, "").1).unwrap()
    };
    assert_eq!(probe["version"], ask("/version")["version"]);
    let models = ask("/v1/models");
    assert_eq!(probe["model"], models["data"][0]["id"]);
    assert_eq!(probe["models"], json!([models["data"][0]["id"]]));
    assert_eq!(probe["context_tokens"], 131_072);
    assert_eq!(probe["context_source"], "server");
    assert_eq!(
        (&probe["simulated"], &probe["speed"]),
        (&json!(true), &json!(50.0))
    );

    for row in probe["endpoints"].as_array().unwrap() {
        let (method, path) = row["route"].as_str().unwrap().split_once(' ').unwrap();
        if method == "GET" {
            let (status, _) = fetch(&sim.addr, "GET", path, "");
            assert_eq!(row["status"], status, "{path}");
            let state = if status == 200 { "answers" } else { "absent" };
            assert_eq!(row["state"], state, "{path}");
        }
    }
    // Nothing was asked since, but for the pages above.
    let page = fetch(&sim.addr, "GET", "/metrics", "").1;
    let metrics = probe["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 7, "{metrics:?}");
    for metric in metrics {
        let name = metric["name"].as_str().unwrap();
        let line = page.lines().find(|line| line.starts_with(name)).unwrap();
        let told: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(metric["value"], told, "{name}");
    }
    for dialect in probe["dialects"].as_array().unwrap() {
        assert_eq!(dialect["streams"], true, "{dialect}");
        assert_eq!(dialect["tool"]["kind"], "not_called", "{dialect}");
    }
    assert_eq!(probe["counts_as_usage"], true);
    let firsts = probe["first_tokens"].as_array().unwrap();
    let large = firsts[1]["prompt_tokens"].as_u64().unwrap();
    assert!((2000..=2100).contains(&large), "{large}");
    assert!(
        firsts[1]["first_token_s"].as_f64() > firsts[0]["first_token_s"].as_f64(),
        "{firsts:?}"
    );
    assert_eq!(probe["generates"], "yes");
}

#[test]
fn a_simulated_profile_is_started_for_the_probe_and_its_record_keeps_to_the_schema() {
    let probed = servers(&["probe", "sim", "--json"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(["schema", "probe"])
        .output()
        .unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let probe = probed.json();
    let faults: Vec<String> = validator
        .iter_errors(&probe)
        .map(|e| e.to_string())
        .collect();
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(probe["dialects"][0]["in_profile"], true);
}

#[test]
fn a_server_that_is_healthy_and_never_generates_is_named_within_the_limit() {
    let healthy = |line: &str| match line.split(' ').nth(1) {
        Some("/health") => Some(answer("200 OK", "application/json", r#"{"status":"ok"}"#)),
        Some("/v1/models") => Some(one_model()),
        _ if line.starts_with("GET") => Some(no_route()),
        _ => None,
    };
    // A head, a role and a comment are no tokens; the other one does not even give a status.
    let role = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
                data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n: keepalive 0/9\n\n";
    for beginning in [role, ""] {
        let url = stub(move |line| {
            let counts = line.contains("count_tokens").then(no_route);
            let known = counts.or_else(|| healthy(line));
            known.unwrap_or_else(|| Reply::Begun(beginning.to_owned()))
        });
        let probed = servers(&["probe", &url, "--first-token-limit", "1s"]);
        assert_eq!(probed.code, Some(1), "{}{}", probed.out, probed.err);
        for words in [
            "it accepts requests and does not generate: no token within 1.0 s",
            "on /v1/chat/completions, while /health answers 200 and /v1/models answers 200",
            "Anthropic messages  not tried",
            "version   unknown",
        ] {
            assert!(probed.out.contains(words), "{words}: {}", probed.out);
        }
        let probe = servers(&["probe", &url, "--first-token-limit", "1s", "--json"]).json();
        assert_eq!(probe["generates"], "accepts_only");
        assert_eq!(probe["dialects"][1]["streams"], Value::Null);
        assert_eq!(probe["context_tokens"], 4096);
    }
}

#[test]
fn a_server_that_falls_silent_after_some_requests_is_named_too() {
    let args = ["sim", "--listen", "127.0.0.1:0", "--speed", "50"];
    let fault = ["--set", "faults.stall_after_requests=2"];
    let sim = Serving::start([&args[..], &fault].concat());
    // A second of the server's own time is at least one on the wall.
    let probed = servers(&["probe", &sim.url(), "--first-token-limit", "1s"]);
    assert_eq!(probed.code, Some(1), "{}{}", probed.out, probed.err);
    let words = "it accepts requests and does not generate: no token within";
    assert!(probed.out.contains(words), "{}", probed.out);
    assert!(probed.out.contains("/health answers 200"), "{}", probed.out);
}

#[test]
fn a_server_that_promises_to_keep_connections_and_closes_them_is_probed_all_the_same() {
    // llama.cpp does so after every stream.
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"ready\"}}]}\n\n\
                  data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let url = stub(move |line| match line.split(' ').nth(1) {
        Some("/v1/models") => one_model(),
        Some("/v1/chat/completions") => {
            let length = stream.len();
            Reply::Whole(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\n\
                 Connection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\n\r\n{stream}"
            ))
        }
        _ => no_route(),
    });
    let probe = servers(&["probe", &url, "--json"]).json();
    assert_eq!(probe["generates"], "yes", "{probe}");
    let firsts = probe["first_tokens"].as_array().unwrap();
    assert_eq!(firsts.len(), 2);
    for first in firsts {
        assert!(first["first_token_s"].is_number(), "{first}");
        assert_eq!(first["words"], Value::Null);
        assert_eq!(first["prompt_tokens"], Value::Null, "it tells no usage");
    }
}

#[test]
fn what_a_server_does_not_tell_is_unknown_and_what_it_does_not_speak_is_told_in_its_words() {
    let vllm = include_str!("recordings/servers/vllm.metrics.txt");
    let url = stub(move |line| match line.split(' ').nth(1) {
        Some("/v1/models") => answer("200 OK", "application/json", r#"{"data":[{"id":"m"}]}"#),
        Some("/metrics") => answer("200 OK", "text/plain", vllm),
        Some("/props") => answer("503 Service Unavailable", "text/plain", "loading"),
        _ => no_route(),
    });
    let text = "schema = \"flashrig.server/1\"\nkind = \"attached\"\ntitle = \"mine\"\n";
    let project = project(
        "mine",
        &format!(
            "{text}url = \"{url}\"\ndialects = [\"openai_chat\"]\n\
             [metrics.names]\nrunning = [\"vllm:num_requests_running\"]\n"
        ),
    );
    let probed = servers_in(project.path(), &["probe", "mine", "--json"]);
    assert_eq!(probed.code, Some(1), "{}", probed.err);
    let probe = probed.json();
    for unknown in [
        "version",
        "fingerprint",
        "context_tokens",
        "slots",
        "counted_tokens",
        "counts_as_usage",
    ] {
        assert_eq!(probe[unknown], Value::Null, "{unknown}");
    }
    assert_eq!(probe["context_source"], "unknown");
    assert_eq!(probe["generates"], "no");
    let metrics = json!([
        {"metric": "running", "name": "vllm:num_requests_running", "value": 4.0}
    ]);
    assert_eq!(probe["metrics"], metrics, "only what the profile names");
    let text = servers_in(project.path(), &["probe", "mine"]).out;
    for words in [
        "404: no such route (its profile says that it does)",
        "503  refuses: loading",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn several_models_are_listed_and_none_is_tried_without_a_choice() {
    let url = stub(|line| match line.split(' ').nth(1) {
        Some("/v1/models") => {
            let list = r#"{"data":[{"id":"a"},{"id":"b"}]}"#;
            answer("200 OK", "application/json", list)
        }
        _ => no_route(),
    });
    let probed = servers(&["probe", &url]);
    assert_eq!(probed.code, Some(3), "{}", probed.err);
    assert!(probed.out.contains("lists     a, b"), "{}", probed.out);
    let words = "it lists 2 models; choose one with --model";
    assert!(probed.out.contains(words), "{}", probed.out);
    let probe = servers(&["probe", &url, "--model", "c", "--json"]).json();
    assert_eq!(probe["generates"], "no", "{probe}");
    assert_eq!(probe["remarks"][0], "the model \"c\" is not in its list");
}

#[test]
fn nobody_there_a_web_page_a_missing_key_and_slips_are_told_in_plain_words() {
    let page = stub(|_| {
        answer(
            "200 OK",
            "text/html",
            "<!DOCTYPE html><title>Router</title>",
        )
    });
    let locked = stub(|_| answer("401 Unauthorized", "text/plain", "who are you"));
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (args, code, words) in [
        (
            &["probe", &nobody][..],
            3,
            "no server answers at http://127.0.0.1:",
        ),
        (
            &["probe", &page],
            3,
            "hardly an LLM server: <!DOCTYPE html>",
        ),
        (
            &["probe", &locked],
            3,
            "who are you; give the key with --key-env NAME",
        ),
        (
            &["probe", "openai"],
            3,
            "OPENAI_API_KEY for the server's key is not set",
        ),
        (&["probe", "vlm"], 2, "did you mean \"vllm\"?"),
        (&["probe", "127.0.0.1:1"], 2, "write http://127.0.0.1:1"),
        (
            &["probe", "sim", "--first-token-limit", "0s"],
            2,
            "no time for a first token",
        ),
    ] {
        let probed = servers(args);
        assert_eq!(probed.code, Some(code), "{args:?}: {}", probed.err);
        assert!(probed.err.contains(words), "{args:?}: {}", probed.err);
        assert_eq!(probed.out, "", "{args:?}");
    }
}

#[test]
fn a_profile_that_cannot_be_used_is_named_with_file_line_and_field() {
    let begun = "schema = \"flashrig.server/1\"\nkind = \"attached\"\ntitle = \"x\"\n\
                 url = \"http://h:1\"\n";
    for (text, words) in [
        (
            "[[log]]\nevent = \"refused\"\npattern = '(?<needed_mb>\\d+'\n",
            &[
                "x.toml",
                "line 5",
                "`log.pattern`",
                "is no regular expression",
            ][..],
        ),
        (
            "[[log]]\nevent = \"denied\"\npattern = 'x'\n",
            &["x.toml", "line 6", "unknown variant `denied`", "`refused`"],
        ),
        (
            "[[log]]\nevent = \"finished\"\npattern = '(?<cashed>\\d+)'\n",
            &[
                "x.toml",
                "line 5",
                "group \"cashed\" is none of this event",
                "cached_tokens",
            ],
        ),
        (
            "[[log]]\nevent = \"setting\"\npattern = '\\d+'\n",
            &["x.toml", "line 5", "has no named group"],
        ),
        (
            "[metrics.names]\nruning = [\"a\"]\n",
            &["x.toml", "line 6", "unknown variant `runing`", "`running`"],
        ),
        (
            "[metrics]\npath = \"metrics\"\n[metrics.names]\n",
            &["x.toml", "field `metrics.path`", "begins with /"],
        ),
        (
            "[metrics.names]\nrunning = [\"a b\"]\n",
            &[
                "x.toml",
                "field `metrics.names.running`",
                "\"a b\" is no name",
            ],
        ),
        (
            "dialects = [\"models\"]\n",
            &["x.toml", "field `dialects`", "openai_chat"],
        ),
    ] {
        let project = project("x", &format!("{begun}{text}"));
        for args in [&["list"][..], &["probe", "x"]] {
            let ran = servers_in(project.path(), args);
            assert_eq!(ran.code, Some(2), "{text}: {}", ran.err);
            for word in words {
                assert!(ran.err.contains(word), "{word}: {}", ran.err);
            }
        }
    }
}

#[test]
fn the_log_that_the_simulated_server_writes_is_read_by_its_own_profile() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("server.log");
    let args = [
        "sim",
        "--listen",
        "127.0.0.1:0",
        "--speed",
        "50",
        "--server-log",
    ];
    let sim = Serving::start([&args[..], &[log.to_str().unwrap()]].concat());
    let probe = servers(&["probe", &sim.url(), "--json"]).json();
    let large = probe["first_tokens"][1]["prompt_tokens"].as_u64();
    assert!(large.is_some(), "{probe}");
    sim.interrupt();
    assert_eq!(sim.ended().0, Some(0));
    let patterns = Library::new(None).load("sim").unwrap().interface.log;
    let text = fs::read_to_string(&log).unwrap();
    let told: Vec<LogEvent> = text
        .lines()
        .flat_map(|line| events(&patterns, line))
        .collect();
    let has = |wanted: &dyn Fn(&LogEvent) -> bool| told.iter().any(wanted);
    assert!(
        has(&|event| matches!(event, LogEvent::Setting { name, value }
            if name == "max_concurrent" && value == "4")),
        "{text}"
    );
    assert!(
        has(
            &|event| matches!(event, LogEvent::Finished { prompt_tokens, cached_tokens: Some(0), .. }
            if *prompt_tokens == large)
        ),
        "{text}"
    );
}
