use super::*;
use std::io::Write as _;

use proptest::prelude::*;
use tempfile::TempDir;

/// A server that logs, and whoever turns its log over.
struct Rig {
    folder: TempDir,
    file: File,
    log_tailer: LogTailer,
    read: Vec<String>,
    turned: u32,
}

impl Rig {
    fn new(before: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, before).unwrap();
        let log_tailer = LogTailer::begin(&path).unwrap();
        Self {
            file: appending(&path),
            folder,
            log_tailer,
            read: Vec::new(),
            turned: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn write(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).unwrap();
    }

    fn look(&mut self) -> u64 {
        let read = &mut self.read;
        self.log_tailer
            .read(&mut |line| read.push(String::from_utf8_lossy(line).into_owned()))
    }

    fn rename(&mut self) {
        self.turned += 1;
        let old = self.folder.path().join(format!("log.{}", self.turned));
        std::fs::rename(self.path(), old).unwrap();
    }

    fn reopen(&mut self) {
        self.file = appending(&self.path());
    }
}

fn appending(path: &Path) -> File {
    let mut options = File::options();
    options.create(true).append(true).open(path).unwrap()
}

#[test]
fn what_was_there_before_is_not_read_and_what_comes_is_once_its_line_has_ended() {
    let mut rig = Rig::new("old\n");
    rig.write(b"new");
    assert_eq!(rig.look(), 0);
    assert!(rig.read.is_empty());
    rig.write(b"er\nbegun");
    rig.look();
    rig.look();
    assert_eq!(rig.read, ["newer"]);
}

#[test]
fn a_renamed_file_is_read_to_the_end_though_the_server_writes_on_to_it() {
    let mut rig = Rig::new("");
    rig.write(b"a\n");
    rig.rename();
    rig.write(b"b\n");
    std::fs::write(rig.path(), "").unwrap();
    rig.look();
    rig.write(b"c\n");
    rig.reopen();
    rig.write(b"d\n");
    rig.look();
    assert_eq!(rig.read, ["a", "b", "c", "d"]);
}

#[test]
fn a_file_that_was_emptied_is_read_from_its_start_even_when_it_is_longer_again() {
    let mut rig = Rig::new("");
    rig.write(b"a line of before\nbegun");
    rig.look();
    rig.file.set_len(0).unwrap();
    rig.write(b"one\n");
    assert_eq!(rig.look(), 1, "the line that had begun is lost");
    rig.file.set_len(0).unwrap();
    rig.write(b"and a much longer line than all of before\n");
    assert_eq!(rig.look(), 0);
    assert_eq!(
        rig.read,
        [
            "a line of before",
            "one",
            "and a much longer line than all of before"
        ]
    );
}

#[test]
fn what_is_no_utf8_is_a_line_all_the_same_and_one_without_an_end_is_bounded() {
    let mut rig = Rig::new("");
    rig.write(b"bad \xff\xfe bytes\n");
    rig.write(&vec![b'x'; 3 * LONGEST]);
    rig.look();
    assert_eq!(rig.read[0], "bad \u{fffd}\u{fffd} bytes");
    assert!(rig.read.len() > 1);
    let tail = rig.log_tailer.tail.as_ref().unwrap();
    assert!(tail.begun.len() < LONGEST);
}

#[test]
fn what_is_too_far_behind_is_counted_and_the_newest_lines_are_read() {
    let mut rig = Rig::new("");
    let line = [b'y'; 1023];
    let block: Vec<u8> = (0..1024)
        .flat_map(|_| [&line[..], b"\n"].concat())
        .collect();
    for _ in 0..48 {
        rig.write(&block);
    }
    rig.write(b"the last\n");
    let lost = rig.look();
    assert!(lost >= 15 * 1024, "{lost}");
    assert_eq!(lost + rig.read.len() as u64, 48 * 1024 + 1);
    assert_eq!(rig.read.last().map(String::as_str), Some("the last"));
}

struct Nobody;

impl LineSink for Nobody {
    fn line(&self, _: Stamp, _: &str) {}
    fn miss(&self, _: u64) {}
}

#[test]
fn what_cannot_be_followed_is_named_with_the_option() {
    let folder = TempDir::new().unwrap();
    let missing = follow(&folder.path().join("none"), Weak::<Nobody>::new()).unwrap_err();
    assert!(
        missing.to_string().starts_with("--server-log "),
        "{missing}"
    );
    let no_file = follow(folder.path(), Weak::<Nobody>::new()).unwrap_err();
    assert!(no_file.to_string().contains("is not a file"), "{no_file}");
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Look,
    /// Renamed; the server opens it anew after so many more lines.
    Rename(usize),
    Empty,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..40).prop_map(Step::Write),
        3 => Just(Step::Look),
        1 => (0usize..3).prop_map(Step::Rename),
        1 => Just(Step::Empty),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_read_once_and_in_order_however_the_file_is_turned_over(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let mut rig = Rig::new("before\n");
        let mut written = Vec::new();
        let line = |rig: &mut Rig, written: &mut Vec<String>, size: usize| {
            let text = format!("{} {}", written.len(), "z".repeat(size));
            rig.write(format!("{text}\n").as_bytes());
            written.push(text);
        };
        let mut lost = 0;
        for step in steps {
            match step {
                Step::Write(size) => line(&mut rig, &mut written, size),
                Step::Look => lost += rig.look(),
                Step::Rename(late) => {
                    rig.rename();
                    for _ in 0..late {
                        line(&mut rig, &mut written, 3);
                    }
                    lost += rig.look();
                    rig.reopen();
                    // A second file that is turned over before anybody looked is never seen.
                    lost += rig.look();
                }
                Step::Empty => {
                    lost += rig.look();
                    rig.file.set_len(0).unwrap();
                    lost += rig.look();
                }
            }
        }
        lost += rig.look();
        prop_assert_eq!(lost, 0);
        prop_assert_eq!(&rig.read, &written);
    }
}
