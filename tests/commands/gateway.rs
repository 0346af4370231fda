//! `flashrig gateway` as it is typed: addresses, mistakes, the log, Ctrl-C.

use flashrig_testkit::waiting::wait_until;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::support::http::fetch;
use crate::support::serving::Serving;
use flashrig_gateway::standing::LogLine;
use flashrig_testkit::prometheus::Metrics;

const ANYWHERE: &str = "127.0.0.1:0";
const BODY: &str = r#"{"model":"flashrig-sim","messages":[{"role":"user","content":"hi"}]}"#;

fn sim() -> Serving {
    Serving::start(["sim", "--listen", ANYWHERE, "--speed", "1000"])
}

/// Exit code and words of a `flashrig gateway` that does not get as far as serving.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .arg("gateway")
        .args(args)
        .env("FLASHRIG_EMPTY_KEY", "")
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn mistakes_are_told_before_anything_is_served() {
    let taken = TcpListener::bind(ANYWHERE).unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let upstream = ["--upstream", "http://127.0.0.1:9"];
    for (args, code, message) in [
        (&["--listen", "0.0.0.0:0"][..], 2, "--client NAME=TOKEN"),
        (&["--client", "anna"], 2, "not NAME=TOKEN"),
        (&["--order", "side-first"], 2, "--max-in-flight"),
        (&["--max-in-flight", "0"], 2, "--max-in-flight"),
        (&["--answer-probes"], 2, "--model"),
        (&["--model", "m"], 2, "--answer-probes"),
        (&["--listen", &taken], 3, "choose another address"),
        (&["--listen", ANYWHERE, "--log", "/nowhere/log"], 3, "--log"),
        (
            &["--listen", ANYWHERE, "--key-env", "FLASHRIG_NO_KEY"],
            2,
            "FLASHRIG_NO_KEY",
        ),
        (
            &["--listen", ANYWHERE, "--key-env", "FLASHRIG_EMPTY_KEY"],
            2,
            "FLASHRIG_EMPTY_KEY for the server's key is not set or is empty",
        ),
    ] {
        let (exit, said) = refused(&[&upstream[..], args].concat());
        assert_eq!(exit, Some(code), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
    }
    let (exit, said) = refused(&["--upstream", "ftp://h"]);
    assert!(exit == Some(2) && said.contains("uses ftp"), "{said}");
}

#[test]
fn every_request_is_shown_logged_and_counted_under_its_client() {
    let dir = tempfile::TempDir::new().unwrap();
    let log = dir.path().join("log.jsonl");
    let sim = sim();
    let gateway = Serving::start([
        "gateway",
        "--upstream",
        &sim.url(),
        "--listen",
        ANYWHERE,
        "--max-prompt",
        "1000",
        "--log",
        log.to_str().unwrap(),
    ]);
    let chat = |client: &str, body: &str| {
        let path = format!("/client/{client}/v1/chat/completions");
        fetch(&gateway.addr, "POST", &path, body)
    };
    assert_eq!(chat("anna", BODY).0, 200);
    let (status, message) = chat("bert", &BODY.replace("hi", &"long ".repeat(40_000)));
    assert_eq!(status, 400);
    assert!(message.contains("prompt is too long"), "{message}");
    let logged = || fs::read_to_string(&log).unwrap().lines().count();
    wait_until("both are logged", || logged() == 2);

    let (status, page) = fetch(&gateway.addr, "GET", "/metrics", "");
    assert_eq!(status, 200);
    let metrics = Metrics::read(&page);
    for client in ["anna", "bert"] {
        assert_eq!(metrics.of_client("flashrig_requests_total", client), 1.0);
    }
    assert_eq!(metrics.of_client("flashrig_refusals_total", "bert"), 1.0);
    assert_eq!(metrics.of_client("flashrig_refusals_total", "anna"), 0.0);
    let lag = || {
        let (_, page) = fetch(&gateway.addr, "GET", "/metrics", "");
        Metrics::read(&page)
            .get("flashrig_event_loop_lag_seconds_count", &[])
            .unwrap()
    };
    wait_until("the lag is measured", || lag() > 0.0);

    gateway.interrupt();
    let (exit, said) = gateway.ended();
    assert_eq!(exit, Some(0), "{said}");
    assert!(
        said.contains("anna  main POST /v1/chat/completions  200 complete"),
        "{said}"
    );
    assert!(
        said.contains("bert  main POST /v1/chat/completions  400 rejected by gateway"),
        "{said}"
    );
    assert!(said.contains("stopping: no new requests"), "{said}");
    for total in ["\nall            2        1", "\nanna           1        0"] {
        assert!(said.contains(total), "{said}");
    }
    let lines: Vec<LogLine> = fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let clients: Vec<&str> = lines.iter().map(|line| line.client.as_str()).collect();
    assert_eq!(clients, ["anna", "bert"]);
}

#[test]
fn json_is_one_line_that_says_where_and_what() {
    let (sim, line) =
        Serving::start_told(["sim", "--json", "--listen", ANYWHERE, "--speed", "1000"]);
    let reported: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reported["sim"], sim.url());
    assert_eq!(
        (&reported["model"], &reported["speed"]),
        (&"flashrig-sim".into(), &1000.0.into())
    );
    let (gateway, line) = Serving::start_told([
        "gateway",
        "--json",
        "--upstream",
        &sim.url(),
        "--listen",
        ANYWHERE,
    ]);
    let reported: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reported["gateway"], gateway.url());
    assert_eq!(reported["metrics"], format!("{}/metrics", gateway.url()));
    assert_eq!(reported["upstream"], sim.url());
    assert_eq!(
        (&reported["answer_probes"], &reported["model"]),
        (&false.into(), &serde_json::Value::Null)
    );
}

#[test]
fn probes_are_answered_by_the_gateway_when_it_is_told_the_model() {
    // Nobody is there to ask.
    let gateway = Serving::start([
        "gateway",
        "--upstream",
        "http://127.0.0.1:9",
        "--listen",
        ANYWHERE,
        "--answer-probes",
        "--model",
        "qwen",
    ]);
    let (status, list) = fetch(&gateway.addr, "GET", "/client/anna/v1/models", "");
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((status, &list["data"][0]["id"]), (200, &"qwen".into()));
    let count = "/v1/messages/count_tokens";
    assert_eq!(
        fetch(&gateway.addr, "POST", count, "12345").1,
        r#"{"input_tokens":2}"#
    );
    assert_eq!(fetch(&gateway.addr, "POST", "/v1/messages", BODY).0, 502);
}

#[test]
fn quiet_shows_nothing_but_the_address() {
    let sim = sim();
    let gateway = Serving::start([
        "gateway",
        "-q",
        "--upstream",
        &sim.url(),
        "--listen",
        ANYWHERE,
    ]);
    let path = "/v1/chat/completions";
    assert_eq!(fetch(&gateway.addr, "POST", path, BODY).0, 200);
    gateway.interrupt();
    assert_eq!(gateway.ended(), (Some(0), String::new()));
}

/// A gateway with a stream that has begun: the gateway, the server's end, the client's end.
fn streaming(drain: &str) -> (Serving, TcpStream, BufReader<TcpStream>) {
    let server = TcpListener::bind(ANYWHERE).unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let args = [
        "gateway",
        "--listen",
        ANYWHERE,
        "--drain",
        drain,
        "--upstream",
        &url,
    ];
    let gateway = Serving::start(args);
    let mut client = TcpStream::connect(&gateway.addr).unwrap();
    let length = BODY.len();
    write!(
        client,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{BODY}"
    )
    .unwrap();
    let (mut upstream, _) = server.accept().unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"}]}") {
        let mut bytes = [0; 4096];
        let read = upstream.read(&mut bytes).unwrap();
        assert!(read > 0);
        asked.extend_from_slice(&bytes[..read]);
    }
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    write!(upstream, "{head}{}", chunk("data: {}\n\n")).unwrap();
    let mut client = BufReader::new(client);
    let mut line = String::new();
    while line != "data: {}\n" {
        line.clear();
        assert!(client.read_line(&mut line).unwrap() > 0);
    }
    (gateway, upstream, client)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[test]
fn the_first_ctrl_c_lets_a_stream_end() {
    let (gateway, mut upstream, mut client) = streaming("10m");
    gateway.interrupt();
    wait_until("nothing new is taken", || {
        TcpStream::connect(&gateway.addr).is_err()
    });
    write!(upstream, "{}0\r\n\r\n", chunk("data: [DONE]\n\n")).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("[DONE]") && rest.ends_with("0\r\n\r\n"),
        "{rest}"
    );
    let (exit, said) = gateway.ended();
    assert_eq!(exit, Some(0));
    assert!(
        said.contains("10 min to end") && !said.contains("cut off"),
        "{said}"
    );
}

#[test]
fn a_stream_that_does_not_end_in_time_is_cut_off_and_that_is_said() {
    let (gateway, mut upstream, mut client) = streaming("200ms");
    gateway.interrupt();
    let mut rest = Vec::new();
    let broke = client.read_to_end(&mut rest);
    assert!(broke.is_err() || !rest.ends_with(b"0\r\n\r\n"));
    assert_eq!(upstream.read(&mut [0]).unwrap_or(0), 0);
    let (exit, said) = gateway.ended();
    assert_eq!(exit, Some(0));
    assert!(
        said.contains("cutting off 1 request that did not end in time"),
        "{said}"
    );
}

#[test]
fn the_second_ctrl_c_stops_at_once() {
    let (gateway, _upstream, _client) = streaming("10m");
    gateway.interrupt();
    wait_until("it drains", || TcpStream::connect(&gateway.addr).is_err());
    gateway.interrupt();
    assert_eq!(gateway.ended().0, Some(130));
}
