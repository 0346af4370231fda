//! What came of a tool call: judged from its result, since not every dialect marks errors.

use super::place::Means;
use super::script::Action;
use super::shell;
use crate::Step;
use crate::ask::ToolResult;

/// What came of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The step is done.
    Done,
    /// The file was read a second time; the step is to be tried again.
    Reread,
    /// It did not work; the reason as the agent gave it.
    Failed(String),
}

/// Words by which agents say that a call never ran.
const NEVER_RAN: &[&str] = &[
    "inputvalidationerror",
    "invalid arguments",
    "invalid tool",
    "unknown tool",
    "no such tool",
    "tool not found",
    "unavailable tool",
    "failed to parse",
];

/// Words by which agents say that a file was not read.
const NOT_READ: &[&str] = &[
    "no such file",
    "file not found",
    "does not exist",
    "enoent",
    "cannot read",
];

/// Words by which agents say that a file was not changed.
const NOT_CHANGED: &[&str] = &[
    "not found",
    "could not find",
    "no such file",
    "does not exist",
    "must read",
    "not been read",
    "read it first",
    "modified since",
    "multiple matches",
    "failed",
    "rejected",
    "denied",
    "invalid",
    "no occurrence",
    "0 occurrences",
];

/// A result longer than this is contents, not an error message.
const ERROR_TEXT_CHARS: usize = 500;

/// Judges the result of one call.
pub fn judge(action: &Action, means: Means, result: &ToolResult) -> Outcome {
    // The exit status, which some agents put first, is not the reason.
    let reports = |line: &&str| !line.trim().is_empty() && !line.starts_with("Exit code");
    let first_line = result.text.lines().find(reports).unwrap_or_default().trim();
    let lower = first_line.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let failed = || Outcome::Failed(shorten(first_line));
    let marked = result.is_error == Some(true);

    if means == Means::Reread {
        return if already_applied(&action.step, &result.text) {
            Outcome::Done
        } else {
            Outcome::Reread
        };
    }
    match &action.step {
        // A command that exits non-zero has run; a search without a match has searched.
        Step::Run { .. } | Step::Search { .. } => {
            let unmarked_error = result.is_error.is_none() && lower.starts_with("error");
            if (marked || unmarked_error) && says(NEVER_RAN) {
                failed()
            } else {
                Outcome::Done
            }
        }
        Step::Read { .. } => {
            let short = result.text.len() <= ERROR_TEXT_CHARS;
            let unmarked = result.is_error.is_none() || means == Means::Shell;
            let looks_wrong = short && (lower.starts_with("error") || says(NOT_READ));
            if marked || (unmarked && looks_wrong) {
                failed()
            } else {
                Outcome::Done
            }
        }
        Step::Edit { .. } | Step::Write { .. } if means == Means::Shell => {
            let confirmed = shell::confirmation(&action.step)
                .is_some_and(|message| result.text.contains(&message));
            if confirmed { Outcome::Done } else { failed() }
        }
        Step::Edit { .. } | Step::Write { .. } => {
            let unmarked_error =
                result.is_error.is_none() && (lower.starts_with("error") || says(NOT_CHANGED));
            if marked || unmarked_error {
                failed()
            } else {
                Outcome::Done
            }
        }
        Step::Say { .. } => Outcome::Done,
    }
}

/// Whether the file already reads as the edit would leave it: the edit was made before, and the
/// result that said so was lost (a compacted conversation, an interrupted call).
fn already_applied(step: &Step, shown: &str) -> bool {
    let Step::Edit { old, new, .. } = step else {
        return false;
    };
    if new.trim().len() < 3 {
        return false;
    }
    let file = without_line_numbers(shown);
    file.contains(new.as_str()) && (new.contains(old.as_str()) || !file.contains(old.as_str()))
}

/// The text of a file as a reading tool shows it, without the numbers before its lines.
fn without_line_numbers(shown: &str) -> String {
    let bare: Vec<&str> = shown
        .lines()
        .map(|line| number_prefix(line).map_or(line, |end| &line[end..]))
        .collect();
    bare.join("\n")
}

/// Length of a prefix such as `   12→`, `00012| `, `12: ` or `12<tab>`.
fn number_prefix(line: &str) -> Option<usize> {
    let digits_at = line.len() - line.trim_start_matches(' ').len();
    let digits = line[digits_at..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let at = digits_at + digits;
    let rest = &line[at..];
    let mark = ["→", "\t", "| ", ": ", "|", ":"]
        .into_iter()
        .find(|mark| rest.starts_with(mark))?;
    (digits > 0).then_some(at + mark.len())
}

fn shorten(line: &str) -> String {
    let line = if line.is_empty() {
        "the tool gave no reason"
    } else {
        line
    };
    line.chars()
        .take(200)
        .collect::<String>()
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_lines_are_taken_off_in_every_manner_of_showing_them() {
        for shown in [
            "     1→fn a() {\n     2→}",
            "00001| fn a() {\n00002| }",
            "1: fn a() {\n2: }",
            "1\tfn a() {\n2\t}",
        ] {
            assert_eq!(without_line_numbers(shown), "fn a() {\n}");
        }
        assert_eq!(without_line_numbers("fn a() {\n}"), "fn a() {\n}");
    }
}
