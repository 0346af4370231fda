//! `balance --depth`, seen from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const JOURNAL: &str = "\
2024-03-01 Opening
    assets:bank:checking      500
    assets:bank:savings      1000
    equity

2024-03-02 Grocer
    expenses:food:groceries    40.25
    expenses:food:restaurants  10
    expenses:rent             300
    assets:bank:checking

2024-03-03 Lent and borrowed
    loans:given:anna           25
    loans:taken:bert          -25
";

/// Runs the program on a journal of its own.
fn run(name: &str, command: &str, args: &[&str]) -> Output {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, JOURNAL).expect("the journal cannot be written");
    Command::new(env!("CARGO_BIN_EXE_tinyledger"))
        .arg(command)
        .arg(&path)
        .args(args)
        .output()
        .expect("tinyledger did not start")
}

fn balance(name: &str, args: &[&str]) -> String {
    let output = run(name, "balance", args);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("output is not UTF-8")
}

fn usage_error(name: &str, command: &str, args: &[&str]) -> String {
    let output = run(name, command, args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("output is not UTF-8")
}

#[test]
fn deep_accounts_are_folded_into_their_parents() {
    assert_eq!(
        balance("folded.ledger", &["--depth", "2"]),
        "\
assets:bank       1149.75
equity           -1500.00
expenses:food       50.25
expenses:rent      300.00
loans:given         25.00
loans:taken        -25.00
-------------------------
total                0.00
"
    );
}

#[test]
fn a_value_may_follow_an_equals_sign() {
    let text = balance("equals.ledger", &["--depth=1", "--account=expenses"]);
    assert_eq!(
        text,
        "expenses      350.25\n--------------------\ntotal         350.25\n"
    );
}

#[test]
fn a_depth_beyond_all_accounts_changes_nothing() {
    assert_eq!(
        balance("beyond.ledger", &["--depth", "9"]),
        balance("beyond_plain.ledger", &[])
    );
}

#[test]
fn what_folds_to_zero_is_left_out_unless_asked_for() {
    let text = balance("zero.ledger", &["--depth", "1"]);
    assert!(!text.contains("loans"), "{text}");
    assert!(text.contains("assets "), "{text}");
    let text = balance("zero_empty.ledger", &["--depth", "1", "--empty"]);
    let line = text
        .lines()
        .find(|l| l.starts_with("loans "))
        .expect("no line for loans");
    assert_eq!(line.split_whitespace().nth(1), Some("0.00"));
}

#[test]
fn filters_see_the_full_names() {
    let args = ["--account", "expenses:food:groceries", "--depth", "1"];
    assert_eq!(
        balance("filter.ledger", &args),
        "expenses       40.25\n--------------------\ntotal          40.25\n"
    );
}

#[test]
fn a_depth_that_is_no_whole_number_from_one_up_is_a_usage_error() {
    for value in ["0", "-1", "two", "1.5"] {
        assert_eq!(
            usage_error("usage.ledger", "balance", &["--depth", value]),
            format!(
                "tinyledger: --depth needs a whole number of at least 1, not `{value}`; \
                 try `tinyledger --help`\n"
            )
        );
    }
    assert_eq!(
        usage_error("usage_missing.ledger", "balance", &["--depth"]),
        "tinyledger: --depth needs a value; try `tinyledger --help`\n"
    );
    assert_eq!(
        usage_error("usage_register.ledger", "register", &["--depth", "2"]),
        "tinyledger: --depth does not work with `register`; try `tinyledger --help`\n"
    );
}

#[test]
fn the_help_text_explains_it_below_empty() {
    let output = Command::new(env!("CARGO_BIN_EXE_tinyledger"))
        .arg("--help")
        .output()
        .expect("tinyledger did not start");
    let text = String::from_utf8(output.stdout).expect("output is not UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    let empty = lines
        .iter()
        .position(|l| l.starts_with("  --empty "))
        .expect("no --empty");
    assert_eq!(
        lines[empty + 1],
        "  --depth N         fold accounts deeper than N levels into their parents (balance only)"
    );
}
