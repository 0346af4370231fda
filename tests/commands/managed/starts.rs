//! A server is started, told apart, proven and ended.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::managed::place::{FLASHRIG, Place, is_alive, real};

fn proof<'v>(managed: &'v Value, name: &str) -> &'v Value {
    let mut all = managed["variables"].as_array().unwrap().iter();
    all.find(|v| v["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {managed}"))
}

#[test]
fn a_probe_starts_the_server_says_with_what_and_ends_it() {
    let place = Place::new();
    place.profile("real", &real());
    let probed = place.run(&["servers", "probe", "real", "--json"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    let probe = probed.json();
    assert_eq!(probe["generates"], "yes");
    assert_eq!(probe["version"], env!("CARGO_PKG_VERSION"));
    let managed = &probe["managed"];
    let port = probe["url"].as_str().unwrap().rsplit(':').next().unwrap();
    assert_eq!(
        managed["command_line"],
        json!([
            FLASHRIG,
            "sim",
            "--listen",
            format!("127.0.0.1:{port}"),
            "--speed",
            "50",
            "--set",
            "max_concurrent=4",
            "--server-log",
            "/dev/stderr"
        ]),
        "groups whose variables have no value are left out"
    );
    assert_eq!(managed["program_version"], env!("CARGO_PKG_VERSION"));
    let hash = Sha256::digest(fs::read(FLASHRIG).unwrap());
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(managed["program_sha256"], hash);
    assert_eq!(managed["flags_not_checked"], Value::Null);
    assert!(managed["ready_after_s"].as_f64().unwrap() > 0.0);
    assert_eq!(proof(managed, "max_concurrent")["engaged"], true);
    assert_eq!(proof(managed, "speed")["engaged"], Value::Null);
    let pid = managed["pid"].as_u64().unwrap();
    assert!(!is_alive(u32::try_from(pid).unwrap()), "it still runs");

    let text = place.run(&["servers", "probe", "--wide", "real"]).out;
    for message in [
        "ready     after ",
        "max_concurrent = 4, proven by the log: Concurrency: --max-concurrent=4",
        "speed = 50, not proven",
    ] {
        assert!(text.contains(message), "{message}: {text}");
    }
}

#[test]
fn what_is_set_reaches_the_server_and_an_unknown_name_is_answered_with_the_nearest() {
    let place = Place::new();
    place.profile("real", &real());
    let args = [
        "ttft", "--server", "real", "--agents", "1", "--prompt", "512",
    ];
    let set = |more: &[&str]| place.run(&[&args[..], more].concat());
    let ran = set(&["--set", "max_concurrent=2", "--set", "share=0.3", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let server = &ran.json()["server"];
    assert_eq!(server["name"], "real with max_concurrent=2, share=0.3");
    assert_eq!(proof(&server["managed"], "max_concurrent")["told"], "2");
    assert_eq!(proof(&server["managed"], "share")["value"], "0.3");
    for (change, message) in [
        ("max_concurent=2", "did you mean \"max_concurrent\"?"),
        ("max_concurrent=two", "must be a whole number, like 4"),
        ("speed=fast", "must be a number, like 50"),
        ("port=70000", "must be a port, from 1 to 65535"),
    ] {
        let ran = set(&["--set", change]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        ran.says(&["real.toml", change, message]);
    }
    let ran = place.run(&["ttft", "--set", "max_concurent=2"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    ran.says(&["did you mean \"max_concurrent\"?"]);
}

#[test]
fn a_file_that_a_variable_names_is_hashed() {
    let place = Place::new();
    let model = place.file("m.gguf", "weights");
    let script = place.script(&format!(
        "exec {FLASHRIG} sim --speed 100 --listen 127.0.0.1:$2 2>&1"
    ));
    place.profile("fake", &crate::managed::place::scripted(&script, "60s"));
    let args = ["servers", "probe", "fake", "--json"];
    let missing = place.run(&args);
    assert_eq!(missing.code, Some(0), "no model, no flag: {}", missing.err);
    assert_eq!(missing.json()["managed"]["files"], json!([]));

    place.profile(
        "fake",
        &crate::managed::place::scripted(&script, "60s")
            .replace("file = true", "file = true\ndefault = \"m.gguf\""),
    );
    let probe = place.run(&args).json();
    let managed = &probe["managed"];
    let hash = Sha256::digest(b"weights");
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(managed["model_sha256"], hash);
    assert_eq!(managed["model_bytes"], 7);
    assert_eq!(managed["program_version"], "1.2.3");
    let path = managed["model_file"].as_str().unwrap();
    assert_eq!(
        fs::canonicalize(path).unwrap(),
        fs::canonicalize(model).unwrap()
    );
}

#[test]
fn a_running_server_is_attached_to_with_a_profiles_names_or_without() {
    let place = Place::new();
    place.profile("real", &real());
    let sim = crate::support::serving::Serving::start([
        "sim",
        "--listen",
        "127.0.0.1:0",
        "--speed",
        "50",
    ]);
    let by_name = place.run(&["servers", "probe", &format!("real@{}", sim.url()), "--json"]);
    assert_eq!(by_name.code, Some(0), "{}", by_name.err);
    let probe = by_name.json();
    assert_eq!(probe["managed"], Value::Null);
    assert_eq!(probe["name"], format!("real@{}", sim.url()));
    let plain = place
        .run(&["servers", "probe", &sim.url(), "--json"])
        .json();
    assert_eq!(plain["version"], probe["version"]);
}

#[test]
fn the_list_tells_where_a_managed_servers_program_is_and_what_can_be_set() {
    let place = Place::new();
    place.profile("real", &real());
    place.profile(
        "gone",
        &real().replace(FLASHRIG, "no-such-program-anywhere"),
    );
    let listed = place.run(&["servers", "list", "--json"]).json();
    let row = |name: &str| {
        let mut rows = listed.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("real")["program"], FLASHRIG);
    assert_eq!(row("gone")["program"], Value::Null);
    let variables = row("real")["variables"].as_array().unwrap().clone();
    assert!(variables.contains(&json!({
        "name": "max_concurrent",
        "about": "requests at once",
        "default": "4",
        "values": ["1", "2", "4"]
    })));
    let text = place.run(&["servers", "list"]).out;
    assert!(
        text.contains("(managed; no-such-program-anywhere is not on PATH)"),
        "{text}"
    );
}

#[test]
fn a_servers_secrets_come_from_the_operators_environment_and_stay_out_of_records_and_log() {
    let place = Place::new();
    let script = place.script(&format!(
        "echo \"the key is $API_KEY, the place $PLACE\"\n\
         exec {FLASHRIG} sim --speed 100 --listen 127.0.0.1:$2 2>&1"
    ));
    let profile = crate::managed::place::scripted(&script, "60s").replace(
        "[variables.model]",
        "env = { API_KEY = \"{env.OPERATORS_KEY}\", PLACE = \"{project}\" }\n\n[variables.model]",
    );
    place.profile("fake", &profile);
    let args = [
        "ttft", "--server", "fake", "--agents", "1", "--prompt", "512", "--json",
    ];
    let unset = place.run(&args);
    assert_eq!(unset.code, Some(2), "{}", unset.err);
    unset.says(&["server fake", "OPERATORS_KEY", "start.env", "is not set"]);
    let key = "sk-a-long-and-secret-one";
    let output = place
        .command(&args)
        .env("OPERATORS_KEY", key)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    let environment = &run["server"]["managed"]["environment"];
    assert_eq!(environment["API_KEY"], "{env.OPERATORS_KEY}");
    assert!(environment["PLACE"].as_str().unwrap().starts_with('/'));
    let results = place.results().unwrap();
    let log = fs::read_to_string(results.join("server.log")).unwrap();
    assert!(log.contains("the key is ****"), "{log}");
    for file in fs::read_dir(&results).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(key), "{}", path.display());
    }
}
