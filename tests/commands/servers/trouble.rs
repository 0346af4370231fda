//! Servers that accept and do not generate, and things that are no servers.

use super::{Reply, answer, no_route, one_model, servers, stub};
use crate::support::serving::Serving;
use serde_json::Value;
use std::net::TcpListener;

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
        let probed = servers(&["probe", "--wide", &url, "--first-token-limit", "1s"]);
        assert_eq!(probed.code, Some(1), "{}{}", probed.out, probed.err);
        for message in [
            "it accepts requests and does not generate: no token within 1.0 s",
            "on /v1/chat/completions, while /health answers 200 and /v1/models answers 200",
            "Anthropic messages  not tried",
            "version   unknown",
        ] {
            assert!(probed.out.contains(message), "{message}: {}", probed.out);
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
    let probed = servers(&["probe", "--wide", &sim.url(), "--first-token-limit", "1s"]);
    assert_eq!(probed.code, Some(1), "{}{}", probed.out, probed.err);
    let message = "it accepts requests and does not generate: no token within";
    assert!(probed.out.contains(message), "{}", probed.out);
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
    for (args, code, message) in [
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
            "answers 401 (who are you): give the key with --key-env NAME",
        ),
        (
            &["probe", "openai"],
            2,
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
        assert!(probed.err.contains(message), "{args:?}: {}", probed.err);
        assert_eq!(probed.out, "", "{args:?}");
    }
}
