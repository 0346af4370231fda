//! What the rest of the machine did, and programs that change: cases M6 and N2.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flashrig_testkit::waiting::wait_until;

use crate::pair::stage::{Stage, text};

/// A process that uses a processor until it is dropped, or a minute at most.
struct Busy(Child);

impl Busy {
    fn new() -> Self {
        let script = "end=$(($(date +%s) + 60)); while [ $(date +%s) -lt $end ]; do i=0; while [ $i -lt \
                      50000 ]; do i=$((i + 1)); done; done";
        let child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the events of the run have a session's start with this in it.
fn started(results: &Path, part: &str) -> bool {
    let runs = std::fs::read_dir(results).into_iter().flatten().flatten();
    let mut events = runs.map(|run| run.path().join("events.jsonl"));
    events.any(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut starts = text.lines().filter(|l| l.contains("session_started"));
        starts.any(|line| line.contains(part))
    })
}

/// Two sessions that take more than a second.
fn slow() -> Stage {
    let steps = ["ask", "ask", "ask", "write greeting.txt hello", "result"];
    Stage::with(&steps)
}

const SLOW: [&str; 6] = ["--task", "tiny", "--task", "tiny", "--speed", "3"];

#[test]
fn a_round_of_which_one_arm_shared_the_processors_with_others_is_not_compared() {
    let stage = slow();
    let results = stage.project().join("results");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut args = SLOW.to_vec();
    args.extend(["--foreign-load", "reject"]);
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    // Busy from the first session of the second arm on, and until the run is over.
    let loading = std::thread::spawn(move || {
        wait_until("the second arm has begun", || {
            started(&results, "\"arm\":\"back_to_back\"")
        });
        let busy: Vec<Busy> = (0..cores).map(|_| Busy::new()).collect();
        let _ = is_done.recv();
        drop(busy);
    });
    let ran = stage.pair(&args);
    drop(done);
    loading.join().unwrap();
    let record = ran.record();
    let round = &record["rounds"][0];
    assert_eq!(round["valid"], false, "{round:#}");
    let reasons = round["invalid_reasons"].as_array().unwrap();
    let load = reasons.iter().find(|r| r["code"] == "foreign_load");
    let load = load.unwrap_or_else(|| panic!("{reasons:#?}"));
    let arms: Vec<&str> = load["places"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| text(place, "arm"))
        .collect();
    assert!(arms.contains(&"back_to_back"), "{load:#}");
    assert!(load["cpu_share"].as_f64().unwrap() > 0.25, "{load:#}");
    assert!(
        text(load, "text").contains("other programs used"),
        "{load:#}"
    );
    assert_eq!(record["verdict"]["time"], "unknown");
    assert_eq!(ran.code, Some(3));
}

#[test]
fn the_load_is_recorded_and_a_round_compared_where_that_is_accepted() {
    let stage = slow();
    let mut args = SLOW.to_vec();
    args.extend(["--fail-above", "100000", "--foreign-load", "accept"]);
    let ran = stage.pair(&args);
    let record = ran.record();
    assert_eq!(record["rounds"][0]["valid"], true, "{record:#}");
    for arm in ran.arms() {
        let machine = &arm["machine"];
        assert!(machine["span_s"].as_f64().unwrap() > 1.0, "{machine:#}");
        let share = machine["foreign_cpu_share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{machine:#}");
    }
}

#[test]
fn an_agent_whose_program_is_replaced_in_the_first_arm_makes_every_round_since_then_invalid() {
    let stage = slow();
    let profile = stage.project().join("harness/agents/mine.toml");
    let profile = std::fs::read_to_string(profile).unwrap();
    let me = std::env::current_exe().unwrap();
    // A script that becomes the stage's own agent, which must not be touched.
    let script = stage.folder().join("agent.sh");
    let write = move |file: &std::path::Path| {
        std::fs::write(file, format!("#!/bin/sh\nexec '{}' \"$@\"\n", me.display())).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(&script);
    let program = profile.lines().find(|line| line.starts_with("name = "));
    let other = format!("name = '{}'", script.display());
    stage.write(
        "harness/agents/mine.toml",
        &profile.replacen(program.unwrap(), &other, 1),
    );
    let replace = {
        let results = stage.project().join("results");
        std::thread::spawn(move || {
            wait_until("a session has started", || started(&results, ""));
            let new = script.with_extension("new");
            write(&new);
            std::fs::rename(&new, &script).unwrap();
        })
    };
    let ran = stage.pair(&SLOW);
    replace.join().unwrap();
    let record = ran.record();
    let round = &record["rounds"][0];
    assert_eq!(round["valid"], false, "{round:#}");
    let reasons = round["invalid_reasons"].to_string();
    assert!(reasons.contains("program_changed"), "{reasons}");
    assert!(reasons.contains("agent mine was replaced"), "{reasons}");
}
