//! What cannot be measured is said before anything runs.

use crate::pair::stage::Stage;
use crate::sweep::setting::{QUICK, profile, stage};

/// Runs a sweep and expects an end with code 2 and these words, and no results.
fn refused(stage: &Stage, options: &[&str], command: &[&str], message: &[&str]) {
    let ran = stage.run(&[&["sweep"], options, command].concat());
    assert_eq!(ran.code, Some(2), "{options:?} {command:?}: {}", ran.stderr);
    for word in message {
        assert!(
            ran.stderr.contains(word),
            "{options:?} {command:?}: no {word:?} in {}",
            ran.stderr
        );
    }
    let results = stage.project().join("results");
    assert!(!results.exists(), "{options:?} {command:?} left results");
}

const SET: [&str; 4] = ["--server", "even", "--set", "max_concurrent=1,2"];

fn quick() -> Vec<&'static str> {
    [&["--"], &QUICK[..]].concat()
}

#[test]
fn settings_that_make_no_sweep_are_refused_with_what_was_typed() {
    let stage = stage();
    for (sets, message) in [
        (&[][..], &["nothing to sweep over", "--set"][..]),
        (
            &["--set", "max_concurrent"],
            &["has no values", "max_concurrent=1,2"],
        ),
        (&["--set", "max_concurrent="], &["has no values"]),
        (&["--set", "max_concurrent=1,,2"], &["empty value"]),
        (&["--set", "max_concurrent=1,2,1"], &["the value 1 twice"]),
        (&["--set", "max_concurrent=1"], &["only one combination"]),
        (
            &["--set", "kv_bits=8,16", "--set", "sim.kv_bits=4,8"],
            &["sim.kv_bits comes twice"],
        ),
        (
            &["--set", "max_concurent=1,2"],
            &["did you mean \"max_concurrent\"?"],
        ),
        // The second combination is the one that cannot be.
        (
            &["--set", "max_concurrent=1,0"],
            &["sim.max_concurrent", "--set max_concurrent=0"],
        ),
        (
            &["--set", "kv_bits=8,5"],
            &["sim.kv_bits: is 5", "must be 4, 8 or 16"],
        ),
        (
            &["--set", "max_concurrent=1,2", "--rounds", "0"],
            &["--rounds"],
        ),
    ] {
        refused(&stage, &[&SET[..2], sets].concat(), &quick(), message);
    }
    let many: Vec<String> = (1..=300).map(|n| n.to_string()).collect();
    let many = format!("max_concurrent={}", many.join(","));
    refused(
        &stage,
        &["--server", "even", "--set", &many],
        &quick(),
        &["300 combinations", "at most 256", "--one-at-a-time"],
    );
}

#[test]
fn options_that_the_sweep_gives_itself_are_refused_by_name() {
    let stage = stage();
    for (option, message) in [
        (&["--server", "sim"][..], "--server after `--`"),
        (&["--server=sim"], "--server after `--`"),
        (&["--set", "max_concurrent=4"], "--set after `--`"),
        (&["--results", "elsewhere"], "--results after `--`"),
        (&["--json"], "--json after `--`"),
    ] {
        refused(&stage, &SET, &[&quick()[..], option].concat(), &[message]);
    }
    let fit = ["--", "fit", "--contexts", "4k", "--resume", "somewhere"];
    refused(&stage, &SET, &fit, &["--resume after `--`"]);
    let fit = ["--", "fit", "--resume", "somewhere"];
    refused(&stage, &SET, &fit, &["--resume after `--`"]);
}

#[test]
fn commands_that_cannot_be_measured_or_read_are_refused() {
    let stage = stage();
    for (command, message) in [
        (&[][..], &["there is no command to measure", "ttft"][..]),
        (&["--"], &["there is no command to measure"]),
        (
            &["--", "report", "results"],
            &["unknown command after `--` \"report\"", "pair, fit, ttft"],
        ),
        (&["--", "tfft"], &["did you mean \"ttft\"?"]),
        (
            &["--", "sweep", "--", "ttft"],
            &["unknown command after `--` \"sweep\""],
        ),
        (&["ttft"], &["ttft"]),
        (&["--", "ttft", "--agent", "4"], &["after `--`", "--agents"]),
        (&["--", "ttft", "--help"], &["flashrig ttft --help"]),
        (&["--", "fit"], &["after `--`", "--contexts"]),
        (
            &["--", "fit", "--contexts", "4k", "--pass-below", "0.5"],
            &["--pass-below 0.5"],
        ),
        (
            &["--", "ttft", "--prompt", "2k", "--long", "1k"],
            &["--long 1K"],
        ),
        (
            &["--", "pair", "--task", "tinny"],
            &["\"tinny\"", "did you mean \"tiny\""],
        ),
        (&["--", "ttft", "--speed", "0"], &["--speed 0"]),
    ] {
        refused(&stage, &SET, command, message);
    }
}

#[test]
fn a_server_that_cannot_be_started_anew_is_refused() {
    let stage = stage();
    stage.write(
        "harness/servers/theirs.toml",
        "schema = \"flashrig.server/1\"\nkind = \"attached\"\ntitle = \"theirs\"\n\
         url = \"http://127.0.0.1:9\"\n",
    );
    let set = ["--set", "max_concurrent=1,2"];
    for (server, message) in [
        (
            "http://127.0.0.1:9",
            "starts the server anew for each measurement",
        ),
        ("theirs", "starts the server anew for each measurement"),
        ("127.0.0.1:9", "write http://127.0.0.1:9"),
        ("evn", "did you mean \"even\"?"),
    ] {
        let options = [&["--server", server], &set[..]].concat();
        refused(&stage, &options, &quick(), &[server, message]);
    }
    profile(&stage, "broken", "max_concurrent = 0\n");
    let options = [&["--server", "broken"], &set[..]].concat();
    refused(&stage, &options, &quick(), &["broken.toml"]);
}

#[test]
fn a_folder_that_cannot_be_gone_on_with_is_refused() {
    let stage = stage();
    refused(&stage, &["--resume", "nowhere"], &[], &["nowhere"]);
}

#[test]
fn results_that_cannot_be_written_are_told_before_anything_runs() {
    let stage = stage();
    stage.write("taken", "a file\n");
    let args = [&["sweep"], &SET[..], &["--results", "taken/in"], &quick()].concat();
    let ran = stage.run(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("choose another with --results"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("1 of 6"), "{}", ran.stderr);
}
