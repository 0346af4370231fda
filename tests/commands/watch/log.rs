//! `--server-log`: followed wherever it goes, and bounded however much comes.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Child;

use crate::watch::Place;
use flashrig_testkit::waiting::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A run that goes on for minutes if nobody ends it.
const LONG: [&str; 8] = [
    "ttft", "--agents", "1", "--prompt", "1k", "--rounds", "900", "--server",
];

fn begin(place: &Place, log: &std::path::Path) -> Child {
    let url = place.sim.url();
    let more = [url.as_str(), "--server-log", log.to_str().unwrap()];
    place.begin(&[&LONG[..], &more[..]].concat(), "cell_measured")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap())
}

/// As Ctrl-C does.
fn end(child: Child) {
    kill(pid(&child), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}

fn appending(path: &std::path::Path) -> File {
    let mut options = File::options();
    options.create(true).append(true).open(path).unwrap()
}

fn kept(place: &Place) -> String {
    fs::read_to_string(place.results().unwrap().join("server.log")).unwrap_or_default()
}

#[test]
fn a_log_is_followed_from_its_end_and_through_both_kinds_of_rotation() {
    let place = Place::new(&["--speed", "2"]);
    let log = place.folder.path().join("other.log");
    fs::write(&log, "written before\n").unwrap();
    let child = begin(&place, &log);
    let line = |text: &str| {
        appending(&log)
            .write_all(format!("{text}\n").as_bytes())
            .unwrap()
    };
    let is_kept = |text: &str| {
        wait_until(text, || {
            kept(&place).lines().any(|line| line.ends_with(text))
        });
    };
    line("first of all");
    is_kept("first of all");
    fs::rename(&log, place.folder.path().join("other.log.1")).unwrap();
    line("in a new file");
    is_kept("in a new file");
    File::options()
        .write(true)
        .open(&log)
        .unwrap()
        .set_len(0)
        .unwrap();
    line("emptied");
    is_kept("emptied");
    fs::remove_file(&log).unwrap();
    line("made anew");
    is_kept("made anew");
    end(child);
    let text = kept(&place);
    assert_eq!(text.lines().count(), 4, "{text}");
    let seconds: Vec<f64> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(seconds.is_sorted() && seconds[0] > 0.0, "{text}");
}

/// The most resident memory so far, in bytes.
#[cfg(target_os = "linux")]
fn most_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// `FLASHRIG_TEST_LOG_MB=1024` makes it a whole gigabyte.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_is_written_fast_is_followed_with_bounded_memory_and_every_line_is_accounted_for() {
    let megabytes: usize =
        std::env::var("FLASHRIG_TEST_LOG_MB").map_or(200, |mb| mb.parse().unwrap());
    let place = Place::new(&["--speed", "2"]);
    let log = place.folder.path().join("other.log");
    fs::write(&log, "").unwrap();
    let child = begin(&place, &log);
    let before = most_memory(&child);
    let mut line =
        "slot update_slots: id 0 | batch decoded, nothing that anybody looks for ".repeat(14);
    line.truncate(1023);
    let block = format!("{line}\n").repeat(1024);
    let mut file = appending(&log);
    for _ in 0..megabytes {
        file.write_all(block.as_bytes()).unwrap();
    }
    file.write_all(b"prompt 1 tokens needs ~2MB (KV+working+margin), ~1MB available - rejecting\n")
        .unwrap();
    let lines = megabytes as u64 * 1024 + 1;
    let jsonl = place.results().unwrap().join("server.jsonl");
    wait_until("the last line was read", || {
        fs::read_to_string(&jsonl).unwrap().contains("rejecting")
    });
    let most = most_memory(&child);
    end(child);
    assert!(most - before < 100 << 20, "{before} became {most}");

    let kept = kept(&place);
    assert!(kept.len() < 257 << 20, "{}", kept.len());
    let whole = kept
        .lines()
        .filter(|l| !l.starts_with("[flashrig: "))
        .count() as u64;
    let not_kept: u64 = kept
        .lines()
        .filter_map(|l| {
            l.strip_prefix("[flashrig: ")?
                .split(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum();
    eprintln!("{lines} lines: {whole} kept, {not_kept} not; {before} became {most} bytes");
    assert_eq!(whole + not_kept, lines);
}

#[test]
fn a_log_that_cannot_be_followed_or_need_not_be_is_a_wrong_use() {
    let place = Place::new(&["--speed", "1000"]);
    let url = place.sim.url();
    let folder = place.folder.path().to_str().unwrap();
    let log = place.log();
    let log = log.to_str().unwrap();
    for (server, file, said) in [
        (
            url.as_str(),
            "none.log",
            "--server-log none.log: No such file",
        ),
        (url.as_str(), folder, "is not a file; name the file"),
        (
            "sim",
            log,
            "flashrig has the log of one that it starts itself",
        ),
    ] {
        for command in [
            &["ttft", "--agents", "1", "--server"][..],
            &["fit", "--contexts", "4k", "--server"],
            &["servers", "probe"],
        ] {
            let args = [command, &[server, "--server-log", file]].concat();
            let ran = place.run(&args);
            assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
            assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
            assert!(place.results().is_none(), "{args:?}: nothing was begun");
        }
    }
}
