//! How long preparing, diffing and checking out workspaces takes.
//!
//! `cargo bench --bench workspace` uses a fixture-sized repository and one of 1 GiB of history
//! (64 MiB checked out); `-- --mib N --files F` makes the large one another size, with F MiB checked
//! out. Everything happens in a temporary folder below `TMPDIR`, which should be on the file system
//! that results are kept on.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the benchmark")]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[path = "../../../benches/support/history.rs"]
mod history;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use flashrig_workspace::Base;
use flashrig_workspace::{Fixture, FixtureCommit, FixtureFile, Source};

const LIMIT_SMALL: Duration = Duration::from_millis(50);
const LIMIT_LARGE: Duration = Duration::from_secs(2);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args[at + 1].parse::<usize>().unwrap())
    };
    small();
    large(
        number("--mib").unwrap_or(1024),
        number("--files").unwrap_or(64),
    );
}

fn small() {
    let dir = tempfile::TempDir::new().unwrap();
    let files = (0..30)
        .map(|n| FixtureFile {
            path: format!("src/part_{n}.rs"),
            bytes: "fn line() {}\n".repeat(100).into_bytes(),
            executable: false,
        })
        .collect();
    let commit = FixtureCommit {
        author: "bench".into(),
        email: "bench@example.org".into(),
        time: 1_700_000_000,
        message: "bench\n".into(),
        files,
    };
    let source = Source::Fixture(Fixture {
        name: "bench".into(),
        title: "bench".into(),
        commits: vec![commit],
    });
    let start = Instant::now();
    let base = Base::make(&source, &dir.path().join("base")).unwrap();
    println!("fixture: base made         {:>9.1?}", start.elapsed());
    report("fixture", &base, dir.path(), 20, LIMIT_SMALL);
}

fn large(mib: usize, files: usize) {
    let dir = tempfile::TempDir::new().unwrap();
    let theirs = dir.path().join("theirs");
    history::history(&theirs, mib, files);
    let source = Source::Repository {
        path: theirs,
        revision: "HEAD".into(),
    };
    let start = Instant::now();
    let base = Base::make(&source, &dir.path().join("base")).unwrap();
    println!("{mib} MiB: base made          {:>9.1?}", start.elapsed());
    report(&format!("{mib} MiB"), &base, dir.path(), 3, LIMIT_LARGE);
}

fn report(name: &str, base: &Base, dir: &Path, times: u32, limit: Duration) {
    let workspace = dir.join("workspace");
    let out = dir.join("out");
    let (mut copies, mut patches, mut checkouts) = (Vec::new(), Vec::new(), Vec::new());
    let mut how = None;
    for n in 0..times {
        let start = Instant::now();
        how = Some(base.copy_to(&workspace).unwrap());
        copies.push(start.elapsed());
        fs::write(workspace.join("change"), format!("{n}\n")).unwrap();
        let start = Instant::now();
        let patch = base.patch(&workspace).unwrap();
        patches.push(start.elapsed());
        let start = Instant::now();
        base.checkout(&patch.tree, &out).unwrap();
        checkouts.push(start.elapsed());
        fs::remove_dir_all(&workspace).unwrap();
        fs::remove_dir_all(&out).unwrap();
    }
    let how = how.unwrap();
    let copy = median(&mut copies);
    println!(
        "{name}: workspace copied   {copy:>9.1?}  ({:?}, {} MiB shared, {} MiB copied; limit {limit:?}: {})",
        how.method,
        how.shared_bytes >> 20,
        how.copied_bytes >> 20,
        if copy <= limit { "kept" } else { "EXCEEDED" },
    );
    println!("{name}: patch computed     {:>9.1?}", median(&mut patches));
    println!(
        "{name}: tree checked out   {:>9.1?}",
        median(&mut checkouts)
    );
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
