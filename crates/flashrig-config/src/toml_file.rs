//! Files that people edit: read whole, parsed with the place of the fault in the error.

use std::path::Path;

use serde::de::DeserializeOwned;

/// A file that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no valid TOML, or a field is missing, unknown or of the wrong type.
    #[error("{file}: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// The parser's message: line, column, the line itself, and what is wrong with it.
        message: String,
    },
    /// A field's value cannot be used.
    #[error("{file}: field `{field}`: {message}")]
    Field {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// What is wrong with it, and what would be right.
        message: String,
    },
    /// The file is of another version.
    #[error("{file}: this file says schema {found:?}; this flashrig reads {expected:?}")]
    Schema {
        /// The file.
        file: String,
        /// What it says.
        found: String,
        /// What was expected.
        expected: String,
    },
}

/// Reads a text file.
///
/// # Errors
/// `Unreadable`, naming the file.
pub fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Unreadable {
        file: path.display().to_string(),
        source,
    })
}

/// Parses TOML. `file` names the text in errors.
///
/// # Errors
/// `Invalid`, with line and column.
pub fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|e| FileError::Invalid {
        file: file.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })
}
