//! A repository of 1 GiB, copied for a session.

use std::fs;
use std::time::Instant;

use flashrig_record::CopyMethod;
use flashrig_workspace::Base;
use flashrig_workspace::Source;

use super::history::history;
use super::table::Row;

const MIB: usize = 1024;
const CHECKED_OUT_MIB: usize = 64;
const TIMES: usize = 5;

pub fn measure() -> Vec<Row> {
    let dir = tempfile::TempDir::new().unwrap();
    let theirs = dir.path().join("theirs");
    history(&theirs, MIB, CHECKED_OUT_MIB);
    let source = Source::Repository {
        path: theirs,
        revision: "HEAD".into(),
    };
    let start = Instant::now();
    let base = Base::make(&source, &dir.path().join("base")).unwrap();
    let made = start.elapsed();

    let workspace = dir.path().join("workspace");
    let mut times = Vec::with_capacity(TIMES);
    let mut how = None;
    for _ in 0..TIMES {
        let start = Instant::now();
        how = Some(base.copy_to(&workspace).unwrap());
        times.push(start.elapsed());
        fs::remove_dir_all(&workspace).unwrap();
    }
    let how = how.unwrap();
    let shares = match how.method {
        CopyMethod::Reflink => "the file system shares blocks",
        CopyMethod::HardLinkedObjects => "objects hard-linked",
        CopyMethod::Copied => "nothing shared: the target is not for this file system",
    };
    vec![
        Row::times(
            "1 GiB repository copied for a session",
            &times,
            (how.method != CopyMethod::Copied).then_some(2000.0),
        )
        .with(format!(
            "{shares}; {} MiB shared, {} MiB copied",
            how.shared_bytes >> 20,
            how.copied_bytes >> 20
        )),
        Row::times("  its base made, once per run", &[made], None),
    ]
}
