//! What can be wrong with a file that people write.

use std::fmt;
use std::path::Path;

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
    pub fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file or folder cannot be read.
    #[error("{file}: cannot be read: {problem}")]
    Unreadable {
        /// The file or folder.
        file: String,
        /// What the system said.
        problem: String,
    },
    /// The file says something that it must not.
    #[error("{}", invalid(.file, *.position, .field.as_deref(), .problem))]
    Invalid {
        /// The file, as a person would find it.
        file: String,
        /// Where in the file, when that is known.
        position: Option<Position>,
        /// The field, e.g. `checks[1].must_print`.
        field: Option<String>,
        /// What is wrong and what to do.
        problem: String,
    },
}

impl FileError {
    /// The whole file is at fault, or is missing.
    pub fn whole(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            file: file.into(),
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

/// Reads a text file.
///
/// # Errors
/// `Unreadable`, naming the file.
pub fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|error| FileError::Unreadable {
        file: path.display().to_string(),
        problem: error.to_string(),
    })
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
