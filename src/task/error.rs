//! What can be wrong with a task or a fixture.

use std::fmt;

/// A place in a text file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl Position {
    /// The position of the byte at `offset` of `text`.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Why a task cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// No task of that name.
    #[error("there is no task `{name}`{}", suggestion(.nearest.as_deref(), .known, "tasks"))]
    UnknownTask {
        /// The name asked for.
        name: String,
        /// The known name that resembles it most, if any does.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// A file that says something it must not.
    #[error("{}", invalid(.file, *.position, .field.as_deref(), .problem))]
    Invalid {
        /// The file, as a person would find it.
        file: String,
        /// Where in it, when that is known.
        position: Option<Position>,
        /// The field, e.g. `checks[1].must_print`.
        field: Option<String>,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file or folder that cannot be read.
    #[error("{path} cannot be read: {problem}")]
    Unreadable {
        /// The file or folder.
        path: String,
        /// What the system said.
        problem: String,
    },
}

impl TaskError {
    /// A whole file is at fault, or is missing.
    pub(super) fn file(file: String, problem: impl Into<String>) -> Self {
        Self::Invalid {
            file,
            position: None,
            field: None,
            problem: problem.into(),
        }
    }
}

fn invalid(
    file: &str,
    position: Option<Position>,
    field: Option<&str>,
    problem: &str,
) -> impl fmt::Display {
    let place = position.map_or(String::new(), |p| format!(":{}:{}", p.line, p.column));
    let field = field.map_or(String::new(), |f| format!(" {f}:"));
    format!("{file}{place}:{field} {problem}")
}

/// `; did you mean …? (tasks: …)`, or as much of it as there is to say.
pub(super) fn suggestion(nearest: Option<&str>, known: &[String], what: &str) -> String {
    let nearest = nearest.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
    let known = if known.is_empty() {
        format!(" (there are no {what})")
    } else {
        format!(" ({what}: {})", known.join(", "))
    };
    nearest + &known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "a = 1\nä = \"x\"\n";
        let offset = text.find("\"x\"").unwrap();
        assert_eq!(Position::of(text, offset), Position { line: 2, column: 5 });
    }
}
