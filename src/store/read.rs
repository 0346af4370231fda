//! Reading a results folder, sealed or not.

use std::fs;
use std::path::{Path, PathBuf};

use crate::records::{Event, RUN_SCHEMA, Run, apply};

/// A results folder that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such folder or file.
    #[error(
        "{path} cannot be read: {source}; give the folder of a run, e.g. results/<time>-pair-…"
    )]
    Unreadable {
        /// What was looked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not what flashrig writes.
    #[error("{path}: line {line}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong, with the field.
        message: String,
    },
    /// Of a version that this flashrig does not know.
    #[error("{path}: schema is {found:?}; this flashrig reads {RUN_SCHEMA:?}")]
    Schema {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// Killed before anything was measured.
    #[error("{path} tells of no started run: it was stopped while still preparing")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the record of a run: `run.json` when it is there, else what `events.jsonl` tells.
///
/// # Errors
/// See [`ReadError`].
pub fn read_run(folder: &Path) -> Result<Run, ReadError> {
    let path = folder.join("run.json");
    match fs::read_to_string(&path) {
        Ok(text) => parse(&path, &text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => rebuild(&folder.join("events.jsonl")),
        Err(source) => Err(ReadError::Unreadable { path, source }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Run, ReadError> {
    let invalid = |e: serde_json::Error| ReadError::Invalid {
        path: path.to_owned(),
        line: e.line(),
        message: e.to_string(),
    };
    // The version first: a later format may lack fields that this one needs.
    let value: serde_json::Value = serde_json::from_str(text).map_err(invalid)?;
    let found = value
        .get("schema")
        .and_then(|s| s.as_str())
        .unwrap_or_default();
    if found != RUN_SCHEMA {
        return Err(ReadError::Schema {
            path: path.to_owned(),
            found: found.to_owned(),
        });
    }
    serde_json::from_str(text).map_err(invalid)
}

/// Folds the events. The last line may be cut off: the rig was killed while writing it.
fn rebuild(path: &Path) -> Result<Run, ReadError> {
    let text = fs::read_to_string(path).map_err(|source| ReadError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let lines: Vec<&str> = text.lines().collect();
    let mut run = None;
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str::<Event>(line) {
            Ok(event) => apply(&mut run, event),
            Err(_) if index + 1 == lines.len() && !text.ends_with('\n') => {}
            Err(e) => {
                return Err(ReadError::Invalid {
                    path: path.to_owned(),
                    line: index + 1,
                    message: e.to_string(),
                });
            }
        }
    }
    run.ok_or_else(|| ReadError::Empty {
        path: path.to_owned(),
    })
}
