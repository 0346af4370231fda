//! `flashrig ttft` as people run it, against simulated servers, faulty ones, and things that are no
//! LLM servers at all.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot get what it needs has failed"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flashrig::sim::{Faults, Sim, SimConfig, SimHandle, SimProfile, SimTable};
use serde_json::Value;
use tempfile::TempDir;

/// What a run of the command gave.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
    results: PathBuf,
    _folder: TempDir,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:#?}"))
    }

    /// The one results folder.
    fn folder(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(&self.results).unwrap();
        entries.next().unwrap().unwrap().path()
    }
}

/// Runs `flashrig` in a folder of its own with nothing of the environment that tests run in.
fn flashrig(args: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    let results = folder.path().join("results");
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(args)
        .env_clear()
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        results,
        _folder: folder,
    }
}

fn ttft(args: &[&str]) -> Ran {
    flashrig(&[&["ttft"], args].concat())
}

/// A simulated server with faults; at speed 1000 it answers at once.
fn sim(speed: f64, faults: Faults) -> SimHandle {
    let profile: toml::Table = toml::from_str(include_str!("../harness/servers/sim.toml")).unwrap();
    let table: SimTable = profile["sim"].clone().try_into().unwrap();
    Sim::start(SimConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        profile: SimProfile::new("sim", "m", 131_072, &table).unwrap(),
        speed,
        scripts: Vec::new(),
        seed: 7,
        log: None,
        server_log: None,
        faults,
    })
    .unwrap()
}

/// Answers every request with the same bytes; what comes after a first `from` requests is `later`.
fn saying(first: &str, from: usize, later: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (first, later) = (first.to_owned(), later.to_owned());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let answer = if number < from { &first } else { &later };
            let mut seen = Vec::new();
            let mut bytes = [0; 4096];
            // Requests are short: a head, and a body that ends with a brace.
            while !(seen.ends_with(b"}") || seen.starts_with(b"GET") && seen.ends_with(b"\r\n\r\n"))
            {
                match stream.read(&mut bytes) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => seen.extend_from_slice(&bytes[..n]),
                }
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Requests by which the rig finds out how the server counts.
const CALIBRATION: u64 = 2;

#[test]
fn each_number_of_requests_at_once_has_its_line_with_times_and_tokens() {
    let ran = ttft(&[
        "--speed", "200", "--agents", "1,3", "--rounds", "2", "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(
        (run["command"].as_str(), run["state"].as_str()),
        (Some("ttft"), Some("finished"))
    );
    let rows = run["ttft"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, agents) in rows.iter().zip([1, 3]) {
        assert_eq!(
            (&row["agents"], &row["rounds"]),
            (&agents.into(), &2.into())
        );
        assert_eq!(
            (&row["asked"], &row["answered"]),
            (&(2 * agents).into(), &(2 * agents).into())
        );
        let ttft = |name: &str| row["ttft_s"][name].as_f64().unwrap();
        assert!(
            ttft("best") <= ttft("median") && ttft("median") <= ttft("worst"),
            "{row}"
        );
        assert!(
            ttft("best") > 0.6,
            "2,048 tokens take 0.63 s of the server's time: {row}"
        );
        let input = row["input_tokens"].as_u64().unwrap();
        assert!(input.abs_diff(2048 * 2 * agents) <= 2 * 2 * agents, "{row}");
        assert_eq!(
            row["cached_tokens"], 0,
            "no prompt shares its beginning: {row}"
        );
        assert_eq!(
            row["output_tokens"].as_u64(),
            Some(64 * 2 * agents),
            "{row}"
        );
        assert!(row["tokens_per_s"].as_f64().unwrap() > 0.0);
    }
    assert!(
        run["verdict"]["answer"]
            .as_str()
            .unwrap()
            .contains("3 at once")
    );
}

#[test]
fn the_record_follows_the_schema_and_the_report_can_be_made_again() {
    let ran = ttft(&["--speed", "200", "--agents", "1,2"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let folder = ran.folder();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    for (file, of) in [
        ("run.json", "run"),
        ("events.jsonl", "event"),
        ("requests.jsonl", "request"),
    ] {
        let schema: Value = serde_json::from_str(&flashrig(&["schema", of]).out).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        let text = read(&folder.join(file));
        let values: Vec<Value> = if file == "run.json" {
            vec![serde_json::from_str(&text).unwrap()]
        } else {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        assert!(!values.is_empty());
        for value in values {
            let errors: Vec<String> = schema.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{file}: {errors:#?}");
        }
    }
    assert_eq!(read(&folder.join("requests.jsonl")).lines().count(), 3);
    let again = flashrig(&["report", folder.to_str().unwrap()]);
    let shown = ran.out.trim().rsplit_once("Results:").unwrap().0;
    assert!(
        !shown.is_empty() && again.out.starts_with(shown),
        "{}\n{}",
        again.out,
        ran.out
    );

    std::fs::remove_file(folder.join("run.json")).unwrap();
    let from_events = flashrig(&["report", folder.to_str().unwrap()]);
    assert_eq!(from_events.out, again.out, "folded from the events");
}

#[test]
fn a_long_prompt_among_short_ones_is_told_apart() {
    let ran = ttft(&[
        "--speed", "200", "--agents", "1,3", "--long", "16k", "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(
        run["ttft"][0]["long_ttft_s"],
        Value::Null,
        "alone there is only a short one"
    );
    let row = &run["ttft"][1];
    let long = row["long_ttft_s"].as_f64().unwrap();
    assert!(long > 5.0, "16K tokens take 5.2 s: {row}");
    assert_eq!(
        row["ttft_s"]["n"], 2,
        "the long one is not among the others: {row}"
    );
}

#[test]
fn prompts_that_begin_alike_are_found_in_the_cache_by_those_that_come_later() {
    let cached = |extra: &[&str]| {
        // Twice as many as there are slots: half of them come when others are over.
        let args = ["--speed", "200", "--agents", "8", "--json"];
        let run = ttft(&[&args, extra].concat()).json();
        run["ttft"][0]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(&[]), 0);
    assert!(cached(&["--shared-prefix"]) > 1500);
}

#[test]
fn a_server_that_stops_answering_is_named_and_what_was_measured_stays() {
    let server = sim(
        1000.0,
        Faults {
            stall_after_requests: Some(CALIBRATION + 6),
            ..Faults::default()
        },
    );
    let url = server.base_url();
    let ran = ttft(&[
        "--server",
        &url,
        "--agents",
        "1,2,4,8",
        "--first-token-limit",
        "5s",
        "--json",
    ]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let run = ran.json();
    assert_eq!(run["state"], "failed");
    let words = run["stopped_because"].as_str().unwrap();
    assert!(
        words.starts_with(
            "the server accepted 7 requests, generated for 6, then for none: 1 waited 5 s in vain"
        ),
        "{words}"
    );
    assert!(words.contains("its health check says 200"), "{words}");
    let rows = run["ttft"].as_array().unwrap();
    let answered: Vec<u64> = rows
        .iter()
        .map(|row| row["answered"].as_u64().unwrap())
        .collect();
    assert_eq!(answered, [1, 2, 3], "a failed one is a row too");
    assert_eq!(rows[2]["stalled"], 1);
    let left: Vec<&Value> = run["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| &l["sessions"])
        .collect();
    assert_eq!(left, [8]);
    assert!(ran.folder().join("run.json").is_file());
}

#[test]
fn a_profile_that_stalls_after_six_streams_ends_within_its_limit() {
    let folder = TempDir::new().unwrap();
    let servers = folder.path().join("harness/servers");
    std::fs::create_dir_all(&servers).unwrap();
    let profile = include_str!("../harness/servers/sim.toml");
    let stalls = format!("{profile}\n[sim.faults]\nstall_after_requests = 6\n");
    std::fs::write(servers.join("stalls.toml"), stalls).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args([
            "ttft",
            "--server",
            "stalls",
            "--speed",
            "120",
            "--first-token-limit",
            "10m",
        ])
        .env_clear()
        .current_dir(folder.path())
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{out}");
    assert!(
        out.contains("accepted 7 requests, generated for 4, then for none"),
        "{out}"
    );
    assert!(
        out.contains("8 at once: not tried: the server had stopped answering"),
        "{out}"
    );
}

#[test]
fn a_server_that_turns_requests_away_gets_a_line_for_them_and_the_answer_no() {
    // Slow enough that all are there before the first is over.
    let server = sim(
        20.0,
        Faults {
            overload_above: Some(2),
            ..Faults::default()
        },
    );
    let ran = ttft(&[
        "--server",
        &server.base_url(),
        "--agents",
        "1,4",
        "--answer-tokens",
        "200",
        "--json",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let row = &ran.json()["ttft"][1];
    assert_eq!((&row["answered"], &row["refused"]), (&2.into(), &2.into()));
    assert!(
        row["reasons"][0].as_str().unwrap().contains("overloaded"),
        "{row}"
    );
}

#[test]
fn a_server_that_does_not_take_the_length_fields_is_measured_and_the_reader_told() {
    let server = sim(
        1000.0,
        Faults {
            refused_shapes: vec![flashrig::sim::RefusedShape::FixedLength],
            ..Faults::default()
        },
    );
    let ran = ttft(&["--server", &server.base_url(), "--agents", "1", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let run = ran.json();
    assert_eq!(run["calibration"]["fixed_output"], false);
    let warnings = run["verdict"]["warnings"].to_string();
    assert!(
        warnings.contains("answers may end before their limit"),
        "{warnings}"
    );
}

#[test]
fn sizes_and_numbers_that_mean_nothing_are_refused_by_the_name_of_their_option() {
    for (args, said) in [
        (["--prompt", "32kk"], "--prompt"),
        (["--prompt", "0"], "--prompt"),
        (["--prompt", "-1"], "--prompt"),
        (["--long", "1x"], "--long"),
        (["--long", "1k"], "--long"),
        (["--agents", "0"], "--agents"),
        (["--agents", "4..1"], "--agents"),
        (["--agents", "-2"], "--agents"),
        (["--answer-tokens", "0"], "--answer-tokens"),
        (["--first-token-limit", "0s"], "--first-token-limit"),
        (["--first-token-limit", "10"], "--first-token-limit"),
        (["--prompt", "1m"], "--prompt 1M"),
        (["--speed", "0"], "--speed"),
    ] {
        let ran = ttft(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
        assert!(!ran.results.exists(), "{args:?}: nothing was begun");
    }
}

#[test]
fn what_is_no_llm_server_is_said_in_words() {
    let page = http(
        "200 OK",
        "text/html",
        "<html><title>Open WebUI</title></html>",
    );
    let models = http("200 OK", "application/json", r#"{"data":[{"id":"m"}]}"#);
    let plain = http(
        "200 OK",
        "application/json",
        r#"{"choices":[{"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}"#,
    );
    let stream = |usage: &str| {
        let body = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}]}}\n\n\
             {usage}data: [DONE]\n\n"
        );
        http("200 OK", "text/event-stream", &body)
    };
    let busy = http(
        "503 Service Unavailable",
        "application/json",
        r#"{"error":{"message":"Loading model"}}"#,
    );
    // What identifies a server: its list of models, its properties, and its version in two places.
    let asked_first = 4;
    for (url, model, said) in [
        (saying(&page, 1, &page), "m", "hardly an LLM server"),
        (saying(&models, asked_first, &page), "m", "HTML page"),
        (saying(&models, asked_first, &plain), "m", "does not stream"),
        (
            saying(&models, asked_first, &stream("")),
            "m",
            "tells no usage",
        ),
        (
            saying(&models, asked_first, &busy),
            "m",
            "503: Loading model",
        ),
        (saying(&models, asked_first, ""), "m", "no HTTP answer"),
        (
            saying(&models, asked_first, &stream("")),
            "n",
            "does not serve the model \"n\"",
        ),
    ] {
        let ran = ttft(&["--server", &url, "--model", model]);
        assert_eq!(ran.code, Some(3), "{said}: {ran:#?}");
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
        assert!(!ran.results.exists(), "{said}: nothing was begun");
    }
}
