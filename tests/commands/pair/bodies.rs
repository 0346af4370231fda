//! The kept bodies, and what they tell: `bodies.zst`, `flashrig bodies`, prefixes and their switch.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::pair::stage::{Agent, GOOD, Stage, names, number, text};

/// `flashrig bodies` on the only run of a stage.
fn bodies(stage: &Stage, args: &[&str]) -> (Option<i32>, Vec<u8>, String) {
    let run = stage.results().display().to_string();
    let mut all = vec!["bodies", run.as_str()];
    all.extend(args);
    let output = stage.flashrig(&all).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, error)
}

/// The list of all bodies of a run.
fn list(stage: &Stage) -> Vec<Value> {
    let (code, out, error) = bodies(stage, &["--json"]);
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_slice(&out).unwrap()
}

/// The bytes of a listed body.
fn printed(stage: &Stage, line: &Value) -> Vec<u8> {
    let number = line["number"].to_string();
    let mut args = vec![text(line, "session"), number.as_str()];
    args.extend((line["kind"] == "response").then_some("--response"));
    let (code, out, error) = bodies(stage, &args);
    assert_eq!(code, Some(0), "{error}");
    out
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

#[test]
fn bodies_of_requests_and_answers_are_printed_as_they_passed() {
    let stage = Stage::with(&["ask", "side", "ask", GOOD[1], GOOD[2]]);
    let ran = stage.pair(&[]);
    let list = list(&stage);
    assert_eq!(list.len(), 2 * 3 * 2, "{list:#?}");
    for line in &list {
        let body = printed(&stage, line);
        assert_eq!(body.len() as f64, number(line, "length"));
        assert_eq!(hash(&body), text(line, "sha256"));
        if line["kind"] == "request" {
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert!(body["messages"].is_array());
            // As the agent sent it: without the line that makes the cache cold.
            assert!(!body.to_string().contains("cache nonce"));
        } else {
            assert!(body.ends_with(b"data: [DONE]\n\n"));
        }
    }
    let requests = stage.result_text("requests.jsonl");
    for row in requests
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
    {
        let folder = format!("r1-{}-{}", text(&row, "arm"), text(&row, "session"));
        let of = |kind: &str| {
            list.iter()
                .find(|l| {
                    l["session"] == folder && l["number"] == row["number"] && l["kind"] == kind
                })
                .unwrap()
        };
        assert_eq!(of("request")["length"], row["request_bytes"]);
        assert_eq!(of("response")["length"], row["response_bytes"]);
        assert!(text(of("request"), "sha256").starts_with(text(&row, "body_hash")));
    }
    for session in ran.sessions() {
        let kept = &session["bodies"];
        assert_eq!(kept["bodies"], 6);
        assert_eq!(kept["dropped"], 0);
        assert!(
            number(kept, "file_bytes") < number(kept, "bytes") / 2.0,
            "{kept}"
        );
    }
}

#[test]
fn without_bodies_only_hashes_and_lengths_are_kept_and_threads_are_known_all_the_same() {
    let stage = Stage::with(&["ask", "ask", GOOD[1], GOOD[2]]);
    let ran = stage.pair(&["--no-bodies"]);
    let list = list(&stage);
    assert_eq!(list.len(), 8);
    for line in &list {
        assert_eq!(
            (&line["stored"], &line["omitted"]),
            (&0.into(), &"not_kept".into())
        );
        assert_eq!(text(line, "sha256").len(), 64);
        assert!(number(line, "length") > 0.0);
    }
    let session = text(&list[0], "session");
    let (code, out, error) = bodies(&stage, &[session, "1"]);
    assert_eq!((code, out.len()), (Some(2), 0));
    assert!(error.contains("--no-bodies"), "{error}");
    assert_eq!(ran.sessions()[0]["prefix"]["turns"], 1);
}

#[test]
fn what_has_no_body_is_named_with_what_there_is() {
    let stage = Stage::with(&GOOD);
    stage.pair(&[]);
    for (args, said) in [
        (&["r9-together-tiny"][..], "r1-together-tiny"),
        (
            &["r1-together-tiny", "77"],
            "request 77 of r1-together-tiny",
        ),
    ] {
        let (code, _, error) = bodies(&stage, args);
        assert_eq!(code, Some(2));
        assert!(error.contains(said), "{error}");
    }
}

/// A server that puts the key it was given into its answer.
fn telltale() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut lines, mut length) = (Vec::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                lines.push(line.trim().to_owned());
            }
            let _ = reader.read_exact(&mut vec![0; length]);
            let key: Vec<&String> = lines
                .iter()
                .filter(|l| l.to_ascii_lowercase().starts_with("authorization"))
                .collect();
            let event = |delta: Value, finish: Value| {
                let choice =
                    serde_json::json!({"index": 0, "delta": delta, "finish_reason": finish});
                let chunk = serde_json::json!({"id": "1", "object": "chat.completion.chunk",
                    "created": 1, "model": "m", "choices": [choice]});
                format!("data: {chunk}\n\n")
            };
            let (kind, body) = if lines
                .first()
                .is_some_and(|l| l.starts_with("POST /v1/chat"))
            {
                let message = format!("your key is {key:?}");
                let text = event(
                    serde_json::json!({"role": "assistant", "content": message}),
                    Value::Null,
                );
                let stop = event(serde_json::json!({}), "stop".into());
                ("text/event-stream", format!("{text}{stop}data: [DONE]\n\n"))
            } else {
                (
                    "application/json",
                    r#"{"data":[{"id":"m","max_model_len":8192}]}"#.to_owned(),
                )
            };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[test]
fn the_servers_key_and_the_sessions_token_are_in_no_kept_body() {
    const KEY: &str = "sk-planted-4711";
    // The agent tells its token; the server, asked once more, tells its key to everybody.
    let stage = Stage::with(&["tell-token", "ask", "ask", GOOD[1], GOOD[2]]);
    let mut command = stage.flashrig(&["pair", "--json", "--agent", "mine", "--task", "tiny"]);
    command
        .args([
            "--rounds",
            "1",
            "--server",
            &telltale(),
            "--key-env",
            "THE_KEY",
        ])
        .env("THE_KEY", KEY);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let list = list(&stage);
    let (mut tokens, mut keys) = (0, 0);
    for line in &list {
        let body = printed(&stage, line);
        assert!(!has(&body, KEY));
        if line["kind"] == "request" {
            assert_ne!(hash(&body), text(line, "sha256"), "the token was taken out");
            assert_eq!(line["redacted"], true);
            assert!(
                has(&body, "my token is ***"),
                "{}",
                String::from_utf8_lossy(&body)
            );
            tokens += 1;
        } else {
            // Masked before it went to the agent, so that nothing is left to take out.
            assert_eq!(hash(&body), text(line, "sha256"));
            assert!(
                has(&body, "Bearer ***"),
                "{}",
                String::from_utf8_lossy(&body)
            );
            keys += 1;
        }
    }
    assert_eq!((tokens, keys), (4, 4));
}

/// Case E1, through the whole rig.
#[test]
fn an_agent_that_changes_its_prefix_is_told_of_with_field_and_byte() {
    let stage = Stage::with(&["ask", "begin 1", "ask", "begin 2", "ask", GOOD[1], GOOD[2]]);
    let ran = stage.pair(&[]);
    for session in ran.sessions() {
        assert_eq!(session["requests"], 3);
        let prefix = &session["prefix"];
        assert_eq!(
            (&prefix["turns"], &prefix["changed"]),
            (&2.into(), &2.into())
        );
        assert_eq!(prefix["changes"][0]["field"], "messages[0].content");
        assert_eq!(prefix["lost"], 0, "the agent's doing is not the server's");
    }
    let report = stage.run(&["report", "--wide", &stage.results().display().to_string()]);
    let said = "the agent changed its prefix at messages[0].content, byte 0, in 4 of 4 turns";
    assert!(report.stdout.contains(said), "{}", report.stdout);
    let second = stage.result_text("requests.jsonl");
    let second: Value = serde_json::from_str(second.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&second["thread"], &second["role"]),
        (&1.into(), &"main".into())
    );
    assert_eq!(second["prefix"]["previous"], 1);
}

#[test]
fn a_stable_prefix_that_the_server_kept_is_told_of_as_such_nonce_or_not() {
    let stage = Stage::with(&["ask", "ask", "ask", GOOD[1], GOOD[2]]);
    let ran = stage.pair(&["--cache", "cold"]);
    for session in ran.sessions() {
        let prefix = &session["prefix"];
        assert_eq!(
            (&prefix["changed"], &prefix["lost"]),
            (&0.into(), &0.into()),
            "{prefix}"
        );
        assert_eq!(prefix["judged"], 2);
    }
    let report = stage.run(&["report", "--wide", &stage.results().display().to_string()]);
    let said = "Prompt prefix of mine: stable in all 4 turns; the server reused it";
    assert!(report.stdout.contains(said), "{}", report.stdout);
}

/// The agent `mine`, whose own setting `CALM` keeps its prefix stable.
fn with_setting() -> Stage {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &["ask", "sh echo \"calm=$CALM\" > calm.txt", GOOD[1], GOOD[2]],
        ..Agent::default()
    });
    let path = "harness/agents/mine.toml";
    let profile = std::fs::read_to_string(stage.project().join(path)).unwrap();
    stage.write(
        path,
        &format!("{profile}\n[stable_prefix.env]\nCALM = \"yes\"\n"),
    );
    stage
}

#[test]
fn the_switch_for_a_stable_prefix_sets_the_agents_own_setting_and_is_recorded() {
    for (args, calm) in [
        (&["--keep", "--stable-prefix"][..], "calm=yes\n"),
        (&["--keep"], "calm=\n"),
    ] {
        let stage = with_setting();
        let ran = stage.pair(args);
        for session in ran.sessions() {
            let file = format!("sessions/{}/workspace/calm.txt", text(&session, "folder"));
            assert_eq!(stage.result_text(&file), calm);
        }
        let asked = args.contains(&"--stable-prefix");
        let set = &ran.record()["spec"]["stable_prefix"];
        let want = serde_json::json!({"mine": ["CALM=yes"]});
        assert_eq!(*set, if asked { want } else { Value::Null });
        let report = stage.run(&["report", "--wide", &stage.results().display().to_string()]);
        assert_eq!(
            report.stdout.contains("stable prefix (mine: CALM=yes)"),
            asked
        );
    }
}

#[test]
fn the_switch_for_a_stable_prefix_is_refused_where_it_would_do_nothing() {
    let stage = Stage::with(&GOOD);
    let ran = stage.pair(&["--stable-prefix"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("stable_prefix.env"), "{}", ran.stderr);
    assert_eq!(
        names(&stage.project().join("results")),
        Vec::<String>::new()
    );
}
