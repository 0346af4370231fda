//! What a probe tells of a server, and what it leaves unknown.

use super::{answer, no_route, project, servers, servers_in, stub};
use crate::support::http::fetch;
use crate::support::serving::Serving;
use serde_json::{Value, json};
use std::process::Command;

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
        let reported: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(metric["value"], reported, "{name}");
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
fn what_a_server_does_not_tell_is_unknown_and_what_it_does_not_speak_is_told_in_its_words() {
    let vllm =
        include_str!("../../../crates/flashrig-server/tests/recordings/servers/vllm.metrics.txt");
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
    let text = servers_in(project.path(), &["probe", "--wide", "mine"]).out;
    for message in [
        "404: no such route (its profile says that it does)",
        "503  refuses: loading",
    ] {
        assert!(text.contains(message), "{message}: {text}");
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
    let message = "it lists 2 models; choose one with --model";
    assert!(probed.out.contains(message), "{}", probed.out);
    let probe = servers(&["probe", &url, "--model", "c", "--json"]).json();
    assert_eq!(probe["generates"], "no", "{probe}");
    assert_eq!(probe["remarks"][0], "the model \"c\" is not in its list");
}
