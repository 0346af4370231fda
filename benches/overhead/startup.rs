//! From spawning `flashrig --help` to its end.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::FLASHRIG;
use super::table::Row;

const TIMES: usize = 200;

pub fn measure() -> Vec<Row> {
    let mut times = Vec::with_capacity(TIMES);
    for n in 0..TIMES + 10 {
        let start = Instant::now();
        let status = Command::new(FLASHRIG)
            .arg("--help")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        let time = start.elapsed();
        assert!(status.success());
        // The first ones bring the file into memory.
        if n >= 10 {
            times.push(time);
        }
    }
    vec![Row::times(
        "start-up of flashrig --help",
        &times,
        Some(10.0),
    )]
}
