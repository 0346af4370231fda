//! `flashrig sim` as it is typed: profiles, changes, logs, mistakes.

use std::fs;
use std::process::Command;

use crate::support::http::fetch;
use crate::support::serving::Serving;
use flashrig_sim::truth::read::TruthRead;

const ANYWHERE: &str = "127.0.0.1:0";

/// Exit code and words of a `flashrig sim` that does not get as far as serving.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(["sim", "--listen", ANYWHERE])
        .args(args)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn mistakes_are_told_with_the_field_before_anything_is_served() {
    for (args, message) in [
        (
            &["--profile", "flash-nex"][..],
            "did you mean \"flash-next\"?",
        ),
        (&["--set", "cache_ram"], "not a change of a value"),
        (&["--set", "cash=1"], "unknown field \"cash\""),
        (
            &["--set", "max_concurrent=0"],
            "sim.max_concurrent: is 0, but it must be above 0",
        ),
        (
            &["--profile", "flash-next", "--set", "kv_bits=7"],
            "with --set kv_bits=7: sim.kv_bits: ",
        ),
        (&["--set", "faults.stal=1"], "unknown field \"stal\""),
        (&["--speed", "0"], "not a positive number"),
    ] {
        let (code, said) = refused(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
    }
    let (code, said) = refused(&["--server-log", "/nowhere/at/all"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("/nowhere/at/all"), "{said}");
}

#[test]
fn a_changed_profile_is_served_and_both_logs_tell_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, log) = (
        folder.path().join("truth.jsonl"),
        folder.path().join("log.txt"),
    );
    let sim = Serving::start([
        "sim",
        "--profile",
        "flash-next",
        "--listen",
        ANYWHERE,
        "--speed",
        "2000",
        "--set",
        "cache_ram=4GB",
        "--set",
        "context=1000",
        "--log",
        truth.to_str().unwrap(),
        "--server-log",
        log.to_str().unwrap(),
    ]);
    let body = |message: usize| {
        let text = "word ".repeat(message);
        format!(
            r#"{{"model":"flash-next","max_tokens":4,"messages":[{{"role":"user","content":"{text}"}}]}}"#
        )
    };
    assert_eq!(
        fetch(&sim.addr, "POST", "/v1/chat/completions", &body(10)).0,
        200
    );
    assert_eq!(
        fetch(&sim.addr, "POST", "/v1/chat/completions", &body(900)).0,
        400
    );
    sim.interrupt();
    assert_eq!(sim.ended().0, Some(0));
    let truth = TruthRead::load(&truth).unwrap();
    assert_eq!(
        (truth.profile.as_str(), truth.speed),
        ("flash-next with cache_ram=4GB, context=1000", 2000.0)
    );
    assert_eq!((truth.requests.len(), truth.refused.len()), (1, 1));
    let log = fs::read_to_string(&log).unwrap();
    assert!(
        log.contains("--prefix-cache-mem=4GB") && log.contains("--ctx-size=1000"),
        "{log}"
    );
    assert!(
        log.contains("rejecting: prompt is too long: ") && log.contains("+4 tokens ["),
        "{log}"
    );
}
