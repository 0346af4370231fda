//! Whatever becomes of flashrig, its server does not outlive it.

use std::fs;

use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::Signal;

use crate::managed::place::{Place, ended, is_alive, real, scripted, signal};

/// A run that goes on for long, with the pid of its server once that is known.
fn running() -> (Place, std::process::Child, u32) {
    let place = Place::new();
    place.profile("real", &real());
    let child = place
        .command(&[
            "ttft",
            "--server",
            "real",
            "--set",
            "speed=0.001",
            "--agents",
            "1",
            "--prompt",
            "1k",
        ])
        .spawn()
        .unwrap();
    let mut pid = 0;
    wait_until("the server runs", || {
        let children = descendants(child.id());
        let server = children
            .iter()
            .find(|(_, command)| command.contains(" sim "));
        pid = server.map_or(0, |(pid, _)| *pid);
        pid != 0
    });
    (place, child, pid)
}

/// All descendants of a process, with their command lines.
fn descendants(root: u32) -> Vec<(u32, String)> {
    let output = std::process::Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,args="])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<(u32, u32, String)> = text
        .lines()
        .filter_map(|line| {
            let mut message = line.split_whitespace();
            let (pid, parent) = (message.next()?.parse().ok()?, message.next()?.parse().ok()?);
            Some((pid, parent, message.collect::<Vec<_>>().join(" ")))
        })
        .collect();
    let mut found = vec![root];
    let mut reported = Vec::new();
    while let Some(parent) = found.pop() {
        for (pid, _, command) in rows.iter().filter(|(_, of, _)| *of == parent) {
            found.push(*pid);
            reported.push((*pid, command.clone()));
        }
    }
    reported
}

#[test]
fn kill_9_of_flashrig_leaves_no_server() {
    let (_place, mut child, server) = running();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the server is gone", || !is_alive(server));
}

#[test]
fn ctrl_c_ends_the_server_before_flashrig_ends() {
    let (_place, child, server) = running();
    signal(child.id(), Signal::SIGINT);
    assert_eq!(ended(child), Some(130));
    wait_until("the server is gone", || !is_alive(server));
}

/// A server that writes its pid and is never ready.
fn starting(args: &[&str]) -> (Place, std::process::Child, u32) {
    let place = Place::new();
    let script = place.script("echo $$ > pid.new; mv pid.new pid; exec sleep 1000");
    place.profile("fake", &scripted(&script, "10m"));
    let child = place.command(args).spawn().unwrap();
    let file = place.path().join("pid");
    wait_until("the server was started", || file.exists());
    let pid = fs::read_to_string(file).unwrap().trim().parse().unwrap();
    (place, child, pid)
}

#[test]
fn ctrl_c_while_the_server_starts_ends_it() {
    for args in [
        &["ttft", "--server", "fake"][..],
        &["fit", "--server", "fake", "--contexts", "2k"],
        &["servers", "probe", "fake"],
    ] {
        let (place, child, server) = starting(args);
        signal(child.id(), Signal::SIGINT);
        assert_eq!(ended(child), Some(130), "{args:?}");
        wait_until("the server is gone", || !is_alive(server));
        assert!(place.results().is_none(), "nothing was measured");
    }
}

#[test]
fn kill_9_while_the_server_starts_leaves_none() {
    let (_place, mut child, server) = starting(&["ttft", "--server", "fake"]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the server is gone", || !is_alive(server));
}
