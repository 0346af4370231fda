//! Runs with a server that flashrig starts.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::managed::place::{FLASHRIG, Place, ended, real, scripted, signal};

const FIT: [&str; 16] = [
    "fit",
    "--server",
    "real",
    "--contexts",
    "2k",
    "--sessions",
    "1..2",
    "--rounds",
    "2",
    "--checks",
    "2",
    "--answer-tokens",
    "16",
    "--seed",
    "7",
    "--no-side",
];

/// A run of fit that was interrupted once a combination was measured.
fn stopped(place: &Place) -> String {
    let slow = [&FIT[..], &["--set", "speed=4"]].concat();
    let child = place.command(&slow).spawn().unwrap();
    let measured = || {
        let events = fs::read_to_string(place.results()?.join("events.jsonl")).ok()?;
        events.contains("cell_measured").then_some(())
    };
    wait_until("a combination is measured", || measured().is_some());
    signal(child.id(), Signal::SIGINT);
    assert_eq!(ended(child), Some(130));
    place.results().unwrap().display().to_string()
}

#[test]
fn a_run_that_was_stopped_goes_on_with_a_server_that_is_started_anew() {
    let place = Place::new();
    place.profile("real", &real());
    let folder = stopped(&place);
    let ran = place.run(&["fit", "--resume", &folder, "--json"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let record: Value = ran.json();
    assert_eq!(record["state"], "finished");
    assert_eq!(record["resumed"], 1);
    // The one that was cut short is kept beside.
    let all = record["measured"].as_array().unwrap();
    let whole = all.iter().filter(|m| m["stopped"].is_null());
    assert_eq!(whole.count(), 4, "two numbers of sessions in two rounds");
}

#[test]
fn a_death_before_anything_is_measured_is_told_with_its_signal() {
    let place = Place::new();
    let note = place.path().join("pid");
    let script = place.script(&format!(
        "echo $$ > {}\nexec {FLASHRIG} sim --listen 127.0.0.1:$2 --speed 0.02",
        note.display()
    ));
    place.file("m", "");
    place.profile("slow", &scripted(&script, "60s"));
    let args = ["ttft", "--server", "slow", "--set", "model=m"];
    let mut child = place.command(&args).spawn().unwrap();
    let mut reported = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("finding out how") {
        line.clear();
        assert_ne!(reported.read_line(&mut line).unwrap(), 0, "it ended before");
    }
    let pid = fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    signal(pid, Signal::SIGKILL);
    let mut rest = String::new();
    reported.read_to_string(&mut rest).unwrap();
    assert_eq!(ended(child), Some(3), "{rest}");
    let message = "died before anything was measured: it was killed by SIGKILL";
    assert!(rest.contains(message), "{rest}");
}

#[test]
fn a_value_that_is_set_twice_is_refused() {
    let place = Place::new();
    place.profile("real", &real());
    let twice = ["--set", "max_concurrent=2", "--set", "max_concurrent=4"];
    let ran = place.run(&[&["ttft", "--server", "real"][..], &twice].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    ran.says(&["--set gives max_concurrent twice"]);
}

#[test]
fn a_context_beyond_what_the_server_tells_is_said_to_be() {
    let place = Place::new();
    place.profile("real", &real());
    let more = ["--context", "1m", "--agents", "1", "--answer-tokens", "16"];
    let ran = place.run(&[&["ttft", "--wide", "--server", "real"][..], &more].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let message = "(as given; the server says 131,072)";
    assert!(ran.out.contains(message), "{}", ran.out);
}

#[test]
fn a_run_does_not_go_on_with_another_server() {
    let place = Place::new();
    place.profile("real", &real());
    let folder = stopped(&place);
    let refused = |message: &[&str]| {
        let ran = place.run(&["fit", "--resume", &folder]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        ran.says(&["the server is not the one that the run"]);
        ran.says(message);
    };
    place.profile("real", &real().replace("default = 4", "default = 3"));
    refused(&["its settings was", "max_concurrent=4", "max_concurrent=3"]);
    // Another build behind the same name.
    let copy = place.path().join("other-build");
    fs::copy(crate::managed::place::FLASHRIG, &copy).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&copy).unwrap();
    std::io::Write::write_all(&mut file, b"another").unwrap();
    drop(file);
    let other = copy.display().to_string();
    place.profile(
        "real",
        &real().replace(crate::managed::place::FLASHRIG, &other),
    );
    refused(&["its program (SHA-256) was"]);
}

#[test]
fn the_time_until_the_server_is_ready_is_in_the_record_and_in_no_figure() {
    let place = Place::new();
    place.profile("real", &real());
    let args = [
        "ttft", "--server", "real", "--agents", "1", "--prompt", "512", "--json",
    ];
    let run = place.run(&args).json();
    let ready = run["server"]["managed"]["ready_after_s"].as_f64().unwrap();
    assert!(ready > 0.0);
    let first = &run["measured"][0];
    let begun = first["started_at_s"].as_f64();
    assert!(begun.is_none_or(|at| at >= 0.0), "{first}");
}

#[test]
fn a_version_or_model_that_cannot_be_had_is_said_to_be_unknown() {
    let place = Place::new();
    // A server that tells neither.
    let stub = place.file("stub.py", STUB);
    let script = place.script(&format!("exec python3 {} $2", stub.display()));
    place.profile(
        "fake",
        &crate::managed::place::scripted(&script, "60s").replace(
            "[identity]\nversion = [\"--version\"]\npattern = 'fake (\\S+)'\n",
            "",
        ),
    );
    let ran = place.run(&[
        "ttft", "--server", "fake", "--model", "m", "--agents", "1", "--prompt", "64",
    ]);
    let of_server = ["model unknown (m was asked for)", "(version unknown)"];
    assert!(
        of_server.iter().all(|message| ran.out.contains(message)),
        "{}{}",
        ran.out,
        ran.err
    );
}

/// An LLM server without model list and version.
const STUB: &str = r#"
import http.server, json, sys, time
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_GET(self):
        body = b'{}'
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = sum(len(m["content"].split()) for m in asked.get("messages", []))
        if self.path != "/v1/chat/completions":
            self.send_response(404); self.send_header("Content-Length", "0"); self.end_headers(); return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        def say(value): self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n"); self.wfile.flush()
        for n in range(4):
            say({"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]})
        say({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        say({"choices": [], "usage": {"prompt_tokens": words, "completion_tokens": 4, "total_tokens": words + 4}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
"#;
