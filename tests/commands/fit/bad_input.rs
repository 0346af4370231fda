//! What cannot be measured is said before anything runs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::fit::place::{EVEN, Place};

/// Runs `flashrig fit` and expects an end with this code and these words, and no results.
fn refused(place: &Place, args: &[&str], code: i32, message: &[&str]) {
    let ran = place.run(["fit"].iter().chain(args));
    assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
    for word in message {
        assert!(
            ran.stderr.contains(word),
            "{args:?}: no {word:?} in {}",
            ran.stderr
        );
    }
    assert!(
        !place.path().join("results").exists(),
        "{args:?} left results"
    );
}

#[test]
fn options_that_mean_nothing_are_refused_by_name() {
    let place = Place::new();
    for (args, message) in [
        (
            &["--contexts", "32kk"][..],
            &["--contexts", "32kk", "32k"][..],
        ),
        (&["--contexts", "0"], &["--contexts"]),
        (&["--contexts", "-1"], &["--contexts", "-1"]),
        (&["--contexts", "4k", "--sessions", "-2"], &["--sessions"]),
        (&[], &["--contexts"]),
        (&["--contexts", "4k", "--sessions", "0"], &["--sessions"]),
        (
            &["--contexts", "4k", "--sessions", "4..1"],
            &["--sessions", "backwards"],
        ),
        (&["--contexts", "4k", "--rounds", "0"], &["--rounds"]),
        (&["--contexts", "4k", "--checks", "0"], &["--checks"]),
        (
            &["--contexts", "4k", "--recall", "85"],
            &["--recall", "85%"],
        ),
        (&["--contexts", "4k", "--side-rate", "-1"], &["--side-rate"]),
        (&["--contexts", "4k", "--speed", "-3"], &["--speed"]),
        (
            &["--contexts", "4k", "--pass-below", "-1"],
            &["--pass-below"],
        ),
        (
            &["--contexts", "4k", "--pass-below", "3"],
            &["--pass-below", "--fail-above"],
        ),
        (&["--contexts", "4k", "--speed", "0"], &["--speed"]),
        (
            &["--contexts", "4k", "--first-token-limit", "0s"],
            &["--first-token-limit"],
        ),
        (&["--contexts", "4k", "--think", "5"], &["--think", "unit"]),
        (
            &["--contexts", "4k", "--expect", "9", "--sessions", "1..4"],
            &["--expect 9", "1..9"],
        ),
        (&["--contexts", "4k", "--set", "no_such=1"], &["no_such"]),
        (
            &["--contexts", "4k", "--server", "flsh-next"],
            &["flash-next"],
        ),
    ] {
        refused(&place, args, 2, message);
    }
}

#[test]
fn a_context_beyond_the_servers_is_refused_with_the_limit() {
    let place = Place::new();
    let args = ["--contexts", "4k,1m", "--speed", "50"];
    refused(&place, &args, 2, &["--contexts 1M", "128K (131072 tokens)"]);
}

#[test]
fn a_context_that_leaves_no_room_for_the_turns_says_what_they_need() {
    let place = Place::new();
    place.profile("even", EVEN);
    let ran = place.run([
        "fit",
        "--server",
        "even",
        "--speed",
        "50",
        "--contexts",
        "2k",
        "--sessions",
        "1",
        "--rounds",
        "1",
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("a context of 2048 tokens is too small"),
        "{}",
        ran.stderr
    );
    assert!(!place.path().join("results").exists());
}

/// A server that answers every request with these bytes.
fn stub(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    format!("http://{address}")
}

#[test]
fn a_web_page_is_no_server() {
    let place = Place::new();
    let url = stub(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>hello</html>",
    );
    let args = ["--contexts", "4k", "--server", &url, "--model", "m"];
    refused(&place, &args, 3, &["hardly an LLM server"]);
}

#[test]
fn another_model_name_is_answered_with_the_served_one() {
    let place = Place::new();
    let args = ["--contexts", "4k", "--model", "flashrig-sin"];
    refused(&place, &args, 3, &["flashrig-sin", "flashrig-sim"]);
}

#[test]
fn nobody_there_is_said() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    refused(
        &place,
        &["--contexts", "4k", "--server", &url],
        3,
        &["no server answers"],
    );
}
