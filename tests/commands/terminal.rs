//! What people see on a terminal while a command runs, and what is left of it after Ctrl-C.

use std::collections::BTreeSet;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{Agent, Stage};
use crate::support::terminal::Terminal;

const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

fn spins(shown: &str) -> bool {
    shown.contains(|c| SPINNER.contains(c))
}

#[test]
fn a_pair_shows_a_moving_line_per_session_and_leaves_none_after_ctrl_c() {
    let stage = Stage::new();
    stage.agent(&Agent {
        steps: &["ask", "result"],
        ..Agent::default()
    });
    let server = Faulty::start(|n| if n < 3 { Answer::Good } else { Answer::Silent });
    let mut terminal = Terminal::start(&stage.flashrig(&[
        "pair",
        "--task",
        "tiny",
        "--task",
        "tiny",
        "--agent",
        "mine",
        "--rounds",
        "1",
        "--server",
        &server.url,
    ]));
    let mut frames = BTreeSet::new();
    let waits = "turn 1, ";
    terminal.wait_for("a session waits", |shown| shown.contains(waits));
    flashrig_testkit::waiting::wait_until("the spinner moves", || {
        frames.extend(terminal.shown().chars().filter(|&c| SPINNER.contains(c)));
        frames.len() > 2
    });
    terminal.ctrl_c();
    let (code, left) = terminal.ended();
    assert_eq!(code, 130, "{left}");
    assert!(!spins(&left) && !left.contains("^C"), "{left}");
    assert!(!left.contains(waits), "{left}");
    assert_eq!(left.matches("stopping:").count(), 1, "{left}");
    assert!(
        left.trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("Results: "),
        "{left}"
    );
}

#[test]
fn a_second_ctrl_c_ends_it_at_once_and_takes_the_live_lines_along() {
    let stage = Stage::new();
    let mut terminal = Terminal::start(&stage.flashrig(&[
        "fit",
        "--contexts",
        "64k",
        "--sessions",
        "1..2",
        "--speed",
        "1",
    ]));
    terminal.wait_for("a combination is measured", |shown| {
        spins(shown) && shown.contains("[1 of 6]")
    });
    terminal.ctrl_c();
    terminal.wait_for("the stop is confirmed", |shown| shown.contains("stopping:"));
    terminal.ctrl_c();
    let (code, left) = terminal.ended_at_once();
    assert_eq!(code, 130, "{left}");
    assert!(!spins(&left), "{left}");
}

#[test]
fn a_fit_tells_the_time_left_within_its_first_round() {
    let stage = Stage::new();
    let mut terminal = Terminal::start(&stage.flashrig(&[
        "fit",
        "--contexts",
        "16k,32k",
        "--sessions",
        "1..4",
        "--speed",
        "10",
        "--rounds",
        "9",
    ]));
    terminal.wait_for("the time left is told", |shown| {
        let second = shown
            .lines()
            .find(|line| line.contains("[2 of 72] round 1"));
        second.is_some_and(|line| line.contains(", about ") && line.ends_with(" left"))
    });
    terminal.ctrl_c();
    let (code, left) = terminal.ended();
    assert_eq!(code, 130, "{left}");
    assert!(!spins(&left) && !left.contains("^C"), "{left}");
}

/// How the table of `flashrig gateway` begins.
const HEADER: &str = "client  active";

#[test]
fn the_live_table_of_the_gateway_gives_way_to_its_totals_after_ctrl_c() {
    let stage = Stage::new();
    let mut terminal = Terminal::start(&stage.flashrig(&[
        "gateway",
        "--upstream",
        "http://127.0.0.1:9",
        "--listen",
        "127.0.0.1:0",
    ]));
    terminal.wait_for("the table is drawn", |shown| shown.contains(HEADER));
    terminal.ctrl_c();
    let (code, left) = terminal.ended();
    assert_eq!(code, 0, "{left}");
    assert_eq!(left.matches(HEADER).count(), 0, "{left}");
    assert_eq!(left.matches("no requests").count(), 1, "{left}");
    assert!(!left.contains("^C"), "{left}");
}
