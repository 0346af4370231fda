//! What can go wrong before a server is ready: each is named, with what to do, and nothing is left.

use std::net::TcpListener;

use crate::managed::place::{Place, real, scripted};

fn probed(place: &Place, more: &[&str]) -> crate::managed::place::Ran {
    place.run(&[&["servers", "probe", "fake"], more].concat())
}

fn fake(body: &str, limit: &str) -> Place {
    let place = Place::new();
    let script = place.script(body);
    place.profile("fake", &scripted(&script, limit));
    place
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_to_do() {
    let place = Place::new();
    place.profile(
        "fake",
        &real().replace(crate::managed::place::FLASHRIG, "no-such-program"),
    );
    let ran = probed(&place, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&[
        "server fake",
        "\"no-such-program\" is not there",
        "put it on PATH",
    ]);
    // One that flashrig installs.
    let ran = place.run(&["servers", "probe", "llama-server"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&["flashrig servers install llama-server"]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let place = Place::new();
    place.profile("fake", &real());
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let args = ["ttft", "--server", "fake", "--set", &format!("port={port}")];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&[&format!("port {port} is taken"), "--set port=N"]);
    assert!(place.results().is_none(), "nothing was measured");
    drop(holder);
    let args = [&args[..], &["--agents", "1", "--prompt", "512", "--json"]].concat();
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.json()["server"]["url"],
        format!("http://127.0.0.1:{port}")
    );
}

#[test]
fn a_server_that_is_never_ready_is_ended_and_its_last_lines_are_shown() {
    let place = fake(
        "echo $$ > pid; echo loading tensor 7; exec sleep 1000",
        "1s",
    );
    let ran = probed(&place, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&[
        "server fake",
        "was not ready within 1 s",
        "/health had no answer",
        "[ready]",
        "loading tensor 7",
    ]);
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap();
    assert!(!crate::managed::place::is_alive(
        pid.trim().parse().unwrap()
    ));
}

#[test]
fn a_server_that_dies_before_it_is_ready_is_named_with_exit_code_and_last_lines() {
    let place = fake("echo error: cannot load the model; exit 7", "60s");
    let ran = probed(&place, &[]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&[
        "ended with exit code 7",
        "before it was ready",
        "error: cannot load the model",
    ]);
    let place = fake("echo std::bad_alloc; kill -ABRT $$", "60s");
    let ran = probed(&place, &[]);
    ran.says(&[
        "killed by SIGABRT",
        "its log speaks of a lack of memory (std::bad_alloc)",
    ]);
    let place = fake("kill -KILL $$", "60s");
    probed(&place, &[]).says(&["killed by SIGKILL", "its log is empty"]);
}

#[test]
fn a_model_that_is_not_there_is_named() {
    let place = fake("exit 1", "60s");
    let run = |model: &str| {
        place.run(&[
            "ttft",
            "--server",
            "fake",
            "--set",
            &format!("model={model}"),
        ])
    };
    let ran = run("/no/such/m.gguf");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    ran.says(&[
        "server fake: /no/such/m.gguf is not there",
        "the variable model",
        "--set model=PATH",
    ]);
}

#[test]
fn a_flag_that_the_build_does_not_know_is_refused_by_name_before_anything_starts() {
    let place = Place::new();
    let script = place.script("echo started > started; exit 1");
    let profile = scripted(&script, "60s").replace("\"--parallel\"", "\"--paralel\"");
    place.profile("fake", &profile);
    let run = |more: &[&str]| {
        let args = [&["ttft", "--server", "fake"], more].concat();
        place.run(&args)
    };
    let ran = run(&["--set", "parallel=2"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    ran.says(&[
        "server fake",
        "unknown flag \"--paralel\"",
        "did you mean \"--parallel\"?",
        "fake-server --help",
    ]);
    assert!(!place.path().join("started").exists());
    // A variable without a value leaves its flag out.
    run(&[]).says(&["ended with exit code 1"]);
    assert!(place.path().join("started").exists());
}

#[test]
fn a_program_that_lists_no_flags_is_not_checked_and_the_record_says_so() {
    let place = Place::new();
    let script = place.file(
        "mute-server",
        &format!(
            "#!/bin/sh\ncase \"$*\" in *--help*) echo read the manual; exit 2;; esac\n\
             exec {} sim --speed 100 --listen 127.0.0.1:$2",
            crate::managed::place::FLASHRIG
        ),
    );
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.profile("fake", &scripted(&script, "60s"));
    let ran = probed(&place, &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let because = ran.json()["managed"]["flags_not_checked"].clone();
    assert!(
        because.as_str().unwrap().contains("--help` lists no flags"),
        "{because}"
    );
}

#[test]
fn a_flag_that_did_nothing_is_an_error_at_the_start_and_named() {
    let place = Place::new();
    // The server is told of another value than it is started with.
    let profile = real().replace(
        "max_concurrent={max_concurrent}",
        "quantised_miss_every={max_concurrent}",
    );
    place.profile("fake", &profile);
    let ran = place.run(&["ttft", "--server", "fake", "--set", "max_concurrent=2"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    ran.says(&[
        "was started with --set 2, and tells 4 (the log: Concurrency: --max-concurrent=4",
        "--set did nothing",
    ]);
    assert!(place.results().is_none(), "nothing was measured");
    // A probe shows it.
    let ran = probed(&place, &["--json"]).json();
    assert_eq!(ran["managed"]["variables"][0]["engaged"], true, "4 is 4");
}

#[test]
fn metrics_that_are_not_where_the_profile_says_are_unknown_and_do_no_harm() {
    let place = Place::new();
    let profile =
        real() + "\n[metrics]\npath = \"/no-such-page\"\n[metrics.names]\nrunning = [\"a\"]\n";
    place.profile("fake", &profile);
    let ran = probed(&place, &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let probe = ran.json();
    assert_eq!(probe["metrics"], serde_json::json!([]));
    let routes = probe["endpoints"].as_array().unwrap();
    let row = routes
        .iter()
        .find(|row| row["route"] == "GET /no-such-page");
    assert_eq!(row.unwrap()["status"], 404);
    let args = [
        "ttft", "--server", "fake", "--agents", "1", "--prompt", "512",
    ];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
