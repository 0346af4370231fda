//! From how a command ended to what that says. Pure.

use super::runner::{CheckExit, CheckRun};
use crate::task::{Check, DiffLimit};
use flashrig_record::{CheckDetail, CheckOutcome, CheckResult, SessionFailure};
use flashrig_workspace::Patch;

/// How much of a check's output is stored with its result, in bytes.
const STORED_OUTPUT_BYTES: usize = 8 << 10;

/// Judges one run of a check.
pub(super) fn judge(check: &Check, run: &CheckRun) -> CheckResult {
    let output = String::from_utf8_lossy(&run.output);
    let lacks_output = check
        .must_print
        .as_ref()
        .filter(|pattern| !pattern.is_match(&output))
        .map(|pattern| CheckDetail::LacksOutput {
            pattern: pattern.to_string(),
            kept_bytes: run.output.len() as u64,
            dropped_bytes: run.dropped_bytes,
        });
    let (outcome, detail, exit_code) = match (&run.exit, lacks_output) {
        (CheckExit::Exited(0), None) => (CheckOutcome::Passed, CheckDetail::Passed, Some(0)),
        (CheckExit::Exited(0), Some(detail)) => (CheckOutcome::LacksOutput, detail, Some(0)),
        (CheckExit::Exited(code), _) => (
            CheckOutcome::Failed,
            CheckDetail::Exited { exit_code: *code },
            Some(*code),
        ),
        (CheckExit::Signalled(signal), _) => (
            CheckOutcome::Killed,
            CheckDetail::Killed { signal: *signal },
            None,
        ),
        (CheckExit::TimedOut, _) => (
            CheckOutcome::TimedOut,
            CheckDetail::TimedOut {
                limit_s: check.time_limit.into(),
            },
            None,
        ),
        (CheckExit::NotStarted(reason), _) => (
            CheckOutcome::NotRun,
            CheckDetail::NotStarted {
                error: reason.clone(),
            },
            None,
        ),
    };
    CheckResult {
        name: check.name.clone(),
        outcome,
        detail,
        exit_code,
        duration_s: run.duration.into(),
        output_tail: tail(&output).to_owned(),
    }
}

/// The end of a text, cut between characters.
fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(STORED_OUTPUT_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Limits that the patch exceeds.
pub(super) fn exceeded(limit: DiffLimit, patch: &Patch) -> Vec<SessionFailure> {
    let lines = patch.insertions + patch.deletions;
    let files = limit
        .files
        .filter(|limit| patch.files > *limit)
        .map(|limit| SessionFailure::TooManyFiles {
            files: patch.files,
            limit,
        });
    let lines = limit
        .lines
        .filter(|limit| lines > *limit)
        .map(|limit| SessionFailure::TooManyLines { lines, limit });
    files.into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::task::Before;

    fn judged(exit: CheckExit, output: &[u8]) -> CheckResult {
        let check = Check {
            name: "tests".into(),
            run: vec!["true".into()],
            time_limit: Duration::from_secs(9),
            before: Before::Fail,
            must_print: Some(regex::Regex::new("[1-9] passed").unwrap()),
        };
        let run = CheckRun {
            exit,
            output: output.to_vec(),
            dropped_bytes: 0,
            duration: Duration::from_millis(5),
        };
        judge(&check, &run)
    }

    #[test]
    fn success_without_the_required_output_is_no_pass() {
        assert_eq!(
            judged(CheckExit::Exited(0), b"3 passed").outcome,
            CheckOutcome::Passed
        );
        assert_eq!(
            judged(CheckExit::Exited(0), b"0 passed").outcome,
            CheckOutcome::LacksOutput
        );
    }

    #[test]
    fn the_required_output_does_not_make_up_for_a_failure() {
        let result = judged(CheckExit::Exited(101), b"3 passed");
        assert_eq!(
            (result.outcome, result.exit_code),
            (CheckOutcome::Failed, Some(101))
        );
        let ends = [
            (CheckExit::Signalled(9), CheckOutcome::Killed),
            (CheckExit::TimedOut, CheckOutcome::TimedOut),
            (CheckExit::NotStarted("gone".into()), CheckOutcome::NotRun),
        ];
        for (exit, outcome) in ends {
            let result = judged(exit, b"3 passed");
            assert_eq!((result.outcome, result.exit_code), (outcome, None));
        }
    }

    #[test]
    fn the_stored_tail_is_bounded_and_cut_between_characters() {
        let result = judged(CheckExit::Exited(1), "ü".repeat(10_000).as_bytes());
        assert!(result.output_tail.len() <= STORED_OUTPUT_BYTES);
        assert!(result.output_tail.chars().all(|c| c == 'ü'));
    }
}
