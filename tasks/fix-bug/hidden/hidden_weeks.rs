//! Weeks around New Year, seen from outside.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program on a log of its own and returns what it prints.
fn worklog(name: &str, log: &str, args: &[&str]) -> String {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, log).expect("the log cannot be written");
    let output = Command::new(env!("CARGO_BIN_EXE_worklog"))
        .arg(args[0])
        .arg(&path)
        .args(&args[1..])
        .output()
        .expect("worklog did not start");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("output is not UTF-8")
}

const NEW_YEAR: &str = "\
2024-01-02 09:00-10:00 atlas    First week of 2024
2024-12-29 09:00-11:00 atlas    Sunday of the last week
2024-12-30 09:00-12:00 atlas    Monday
2025-01-03 09:00-13:00 borealis Friday
2025-01-06 09:00-14:00 atlas    Second week of 2025
";

#[test]
fn both_ends_of_the_first_week_are_one_line() {
    assert_eq!(
        worklog("both_ends.log", NEW_YEAR, &["report", "--by", "week"]),
        "2024-W01     1:00\n\
         2024-W52     2:00\n\
         2025-W01     7:00\n\
         2025-W02     5:00\n\
         total       15:00\n"
    );
}

#[test]
fn january_can_belong_to_the_last_week_of_the_year_before() {
    let log = "2023-01-01 09:00-10:00 atlas\n\
               2022-12-31 09:00-10:30 atlas\n\
               2023-01-02 09:00-11:00 atlas\n";
    assert_eq!(
        worklog("january.log", log, &["report", "--by", "week"]),
        "2022-W52     2:30\n2023-W01     2:00\ntotal        4:30\n"
    );
}

#[test]
fn a_year_can_have_a_week_53_that_ends_in_january() {
    let log = "2020-12-28 09:00-10:00 atlas\n\
               2021-01-03 09:00-10:00 atlas\n\
               2021-01-04 09:00-10:00 atlas\n\
               2016-01-01 09:00-10:00 atlas\n";
    assert_eq!(
        worklog("week_53.log", log, &["report", "--by", "week"]),
        "2015-W53     1:00\n2020-W53     2:00\n2021-W01     1:00\ntotal        4:00\n"
    );
}

#[test]
fn the_first_week_lists_its_days_in_december() {
    let listed = worklog("first_week.log", NEW_YEAR, &["list", "--week", "2025-W01"]);
    let days: Vec<&str> = listed.lines().map(|line| &line[..10]).collect();
    assert_eq!(days, ["2024-12-30", "2025-01-03"]);

    let listed = worklog(
        "first_week_2.log",
        NEW_YEAR,
        &["list", "--week", "2024-W01"],
    );
    let days: Vec<&str> = listed.lines().map(|line| &line[..10]).collect();
    assert_eq!(days, ["2024-01-02"]);
}

#[test]
fn the_last_week_lists_its_days_in_january() {
    let log = "2018-12-31 09:00-10:00 atlas\n\
               2017-01-01 09:00-10:00 atlas\n\
               2016-12-26 09:00-10:00 atlas\n\
               2017-12-31 09:00-10:00 atlas\n";
    let listed = worklog("last_week.log", log, &["list", "--week", "2016-W52"]);
    let days: Vec<&str> = listed.lines().map(|line| &line[..10]).collect();
    assert_eq!(days, ["2017-01-01", "2016-12-26"]);
}

#[test]
fn months_and_ordinary_weeks_stay_as_they_were() {
    assert_eq!(
        worklog("months.log", NEW_YEAR, &["report", "--by", "month"]),
        "2024-01      1:00\n2024-12      5:00\n2025-01      9:00\ntotal       15:00\n"
    );
    let log = "2024-07-01 09:00-10:00 atlas\n2024-07-07 09:00-10:00 atlas\n";
    assert_eq!(
        worklog("ordinary.log", log, &["report", "--by", "week"]),
        "2024-W27     2:00\ntotal        2:00\n"
    );
}
