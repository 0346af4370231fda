//! llama.cpp's server: what flashrig says of it is what it says itself.

use serde_json::Value;

use crate::servers::stage::{Ran, Real, alone, flashrig, one_at_a_time};

/// Two threads of the server and the client on two cores would only wait for each other.
const USUAL: [&str; 6] = ["-np", "4", "-c", "32768", "-t", "1"];

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_probe_tells_what_plain_requests_show() {
    let _turn = one_at_a_time();
    let server = Real::llama(&USUAL);
    let ran = flashrig(&["servers", "probe", &server.url(), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = ran.json();

    let props = server.get_json("/props");
    let models = server.get_json("/v1/models");
    assert_eq!(found["model"], models["data"][0]["id"]);
    assert_eq!(found["model"], "tiny");
    assert_eq!(
        found["context_tokens"],
        props["default_generation_settings"]["n_ctx"]
    );
    assert_eq!(found["slots"], props["total_slots"]);
    // A build that calls itself unknown has no version.
    assert_eq!(props["build_info"], "b0-unknown");
    assert_eq!(found["version"], Value::Null, "{found:#}");
    assert_eq!(found["generates"], "yes");

    let mut looked_at = 0;
    for endpoint in found["endpoints"].as_array().unwrap() {
        let (method, path) = endpoint["route"].as_str().unwrap().split_once(' ').unwrap();
        if method == "GET" {
            assert_eq!(endpoint["status"], server.get(path).0, "{endpoint}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 4, "{found:#}");
    for dialect in found["dialects"].as_array().unwrap() {
        assert_eq!(dialect["streams"], true, "{dialect}");
        assert_eq!(dialect["tool"]["kind"], "not_called", "{dialect}");
    }
    // Nothing but the probe has used the server, so that its counters stand where the probe saw them.
    let (_, page) = server.get("/metrics");
    let mut compared = 0;
    for metric in found["metrics"].as_array().unwrap() {
        let name = metric["name"].as_str().unwrap();
        let line = page.lines().find(|l| l.split(' ').next() == Some(name));
        let value: f64 = line.unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(metric["value"].as_f64(), Some(value), "{metric}");
        compared += 1;
    }
    assert_eq!(compared, 5, "{found:#}");
}

#[test]
fn first_tokens_of_1_2_and_4_requests_at_once_are_all_measured() {
    let _turn = one_at_a_time();
    let server = Real::llama(&USUAL);
    let args = ["--agents", "1,2,4", "--prompt", "512", "--json"];
    let ran = flashrig(&[&["ttft", "--server", &server.url()], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.json();
    let rows = record["ttft"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for (row, agents) in rows.iter().zip([1, 2, 4]) {
        assert_eq!(row["agents"], agents, "{row:#}");
        assert_eq!(row["answered"], agents, "{row:#}");
        assert!(seconds(&row["ttft_s"]["median"]) > 0.0, "{row:#}");
    }
    for request in ran.requests() {
        assert_eq!(request["end"], "complete", "{request:#}");
        assert_eq!(request["output_tokens"], 64, "{request:#}");
        assert!(request["server_prompt_s"].is_number(), "{request:#}");
    }
}

#[test]
fn sessions_of_512_and_2k_tokens_with_side_requests_are_measured_at_1_2_and_4() {
    let _turn = one_at_a_time();
    let server = Real::llama(&USUAL);
    let args = [
        "--contexts=512,2k",
        "--sessions=1,2,4",
        "--rounds=1",
        "--checks=1",
        "--answer-tokens=16",
        "--json",
    ];
    let ran = flashrig(&[&["fit", "--server", &server.url()], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.json();
    let cells = record["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        assert_eq!(cell["errors"], 0, "{cell:#}");
        assert_eq!(cell["refused"]["client"], 0, "{cell:#}");
        assert!(seconds(&cell["slowdown"]["worst"]) >= 1.0, "{cell:#}");
        // The model answers nonsense, and is found to.
        assert_eq!(cell["recall"]["right"], 0, "{cell:#}");
        assert!(seconds(&cell["cached_share"]) > 0.5, "{cell:#}");
        assert!(cell["side_during_cold"]["n"].as_u64() > Some(0), "{cell:#}");
    }
}

#[test]
fn a_request_beyond_the_context_is_refused_in_the_servers_own_words() {
    let _turn = one_at_a_time();
    let server = Real::llama(&["-np", "2", "-c", "2048", "-t", "1"]);
    let args = ["--context=128k", "--agents=1", "--prompt=3k", "--json"];
    let (url, log) = (server.url(), server.log_file());
    let watched = [
        "ttft",
        "--server",
        &url,
        "--server-log",
        log.to_str().unwrap(),
    ];
    let ran = flashrig(&[&watched, &args[..]].concat());
    // The server answered: it is no fault of the rig.
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let message = "exceeds the available context size (1024 tokens)";
    let refused: Vec<Value> = ran
        .requests()
        .into_iter()
        .filter(|request| request["end"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1, "{ran:#?}");
    assert_eq!(refused[0]["refusal"], "context_too_small", "{refused:#?}");
    let said = refused[0]["error"]["message"].as_str().unwrap();
    assert!(said.contains(message), "{said}");
    // The server's log says the same of the same request, and both stand together.
    let record = ran.json();
    let refusals = record["measured"][0]["watched"]["refusals"]
        .as_array()
        .unwrap();
    assert_eq!(refusals.len(), 1, "{record:#}");
    assert_eq!(refusals[0]["answer"].as_str(), Some(said));
    let line = refusals[0]["log"].as_str().unwrap();
    assert!(line.contains("send_error") && line.contains(said), "{line}");
    assert!(warnings(&ran).contains(message), "{ran:#?}");
}

#[test]
fn the_servers_own_timings_and_the_clients_agree_within_five_percent() {
    let _alone = alone();
    let server = Real::llama(&["-np", "1", "-c", "8192", "-t", "1"]);
    let args = [
        "--agents=1",
        "--prompt=4k",
        "--answer-tokens=128",
        "--rounds=5",
        "--json",
    ];
    let ran = flashrig(&[&["ttft", "--server", &server.url()], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let (mut reading, mut writing) = (Vec::new(), Vec::new());
    for request in ran.requests() {
        let clock = |name: &str| seconds(&request["clocks"][name]);
        let first = clock("first_token_s") - clock("sent_s");
        let rest = clock("last_token_s") - clock("first_token_s");
        reading.push((first / seconds(&request["server_prompt_s"]) - 1.0).abs());
        writing.push((rest / seconds(&request["server_decode_s"]) - 1.0).abs());
    }
    assert_eq!(reading.len(), 5);
    // The middle one of five: others use the machine too.
    for mut differences in [reading, writing] {
        differences.sort_by(f64::total_cmp);
        assert!(differences[2] < 0.05, "{differences:?}");
    }
}

fn warnings(ran: &Ran) -> String {
    ran.json()["verdict"]["warnings"].to_string()
}
