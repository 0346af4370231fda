//! flashrig's own share of a processor over a whole `pair` run with a real agent.
//!
//! The simulated server usually runs inside flashrig; here it is a process of its own, so that its
//! work is not counted. The supervising helpers are flashrig's work too and are added, as sampled.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flashrig_record::Run;

use super::FLASHRIG;
use super::pair::{Reported, run_folder};
use super::table::{Row, Unit};

const WHAT: &str = "flashrig's CPU over the wall of a run";
const TASK: &str = "fix-bug";

pub fn measure(agent: &str) -> Vec<Row> {
    let dir = tempfile::TempDir::new().unwrap();
    let results = dir.path().join("results");
    let server = Server::start(dir.path());
    let start = Instant::now();
    let mut pair = Command::new(FLASHRIG)
        .current_dir(dir.path())
        .args(["pair", "--no-install", "--rounds", "1"])
        .args(["--agent", agent, "--task", TASK])
        .args(["--server", &server.url, "--results"])
        .arg(&results)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut helpers = helpers::Helpers::default();
    let status = loop {
        if let Some(status) = pair.try_wait().unwrap() {
            break status;
        }
        helpers.look();
        std::thread::sleep(Duration::from_millis(50));
    };
    let wall = start.elapsed();
    if status.code() == Some(3) {
        let message = BufReader::new(pair.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .last();
        return vec![Row::missing(WHAT, message.unwrap_or_default())];
    }
    let folder = run_folder(&results);
    let run: Run =
        serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let rig = run.rig.cpu_s.expect("a run without its own CPU").0;
    let supervising = helpers.total();
    let whole = rig + supervising.map_or(0.0, |s| s.as_secs_f64());
    let supervising = supervising.map_or("helpers unknown".to_owned(), |s| {
        format!("helpers {:.2} s", s.as_secs_f64())
    });
    let version = run
        .rounds
        .first()
        .and_then(|r| r.arms.first()?.sessions.first()?.agent.version.clone())
        .unwrap_or_default();
    let reported = Reported::read(&folder);
    vec![
        Row::values(
            WHAT,
            Unit::Percent,
            vec![100.0 * whole / wall.as_secs_f64()],
            Some(2.0),
        )
        .with(format!(
            "{agent} {version}, {TASK} in both arms: flashrig {rig:.2} s + {supervising} of {:.1} s",
            wall.as_secs_f64()
        )),
        Row::times(
            "verification beyond its checks, real checks",
            &reported.verifying,
            Some(100.0),
        )
        .with("3 runs of cargo test, target folders removed"),
    ]
}

/// `flashrig sim` as a process of its own.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(dir: &std::path::Path) -> Self {
        let mut process = Command::new(FLASHRIG)
            .current_dir(dir)
            .args(["sim", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .to_owned();
        Self { process, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// CPU time of the supervising helpers without what they supervise, looked at while they live.
#[cfg(target_os = "linux")]
mod helpers {
    use std::collections::HashMap;
    use std::fs;
    use std::time::Duration;

    use super::FLASHRIG;

    #[derive(Default)]
    pub struct Helpers(HashMap<u32, u64>);

    impl Helpers {
        pub fn look(&mut self) {
            let mine = format!("{FLASHRIG}\0{}\0", flashrig_process::shim::SUBCOMMAND);
            for entry in fs::read_dir("/proc").unwrap().flatten() {
                let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
                let Some(pid) = pid else { continue };
                let Ok(command) = fs::read(entry.path().join("cmdline")) else {
                    continue;
                };
                if command != mine.as_bytes() {
                    continue;
                }
                let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
                    continue;
                };
                // Fields are counted after the name, which may hold anything.
                let Some((_, rest)) = stat.rsplit_once(')') else {
                    continue;
                };
                let ticks = rest.split_whitespace().skip(11).take(2);
                let ticks = ticks.filter_map(|t| t.parse::<u64>().ok()).sum();
                self.0.insert(pid, ticks);
            }
        }

        /// The sum; a clock tick is 10 ms.
        pub fn total(&self) -> Option<Duration> {
            Some(Duration::from_millis(10 * self.0.values().sum::<u64>()))
        }
    }
}

/// Not told here.
#[cfg(not(target_os = "linux"))]
mod helpers {
    use std::time::Duration;

    #[derive(Default)]
    pub struct Helpers;

    impl Helpers {
        pub fn look(&mut self) {}

        pub fn total(&self) -> Option<Duration> {
            None
        }
    }
}
