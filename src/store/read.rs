//! Reading a results folder, sealed or not.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde_json::Value;

use flashrig_clock::Seconds;
use flashrig_record::{
    Event, Kept, LOAD_COMMANDS, LOAD_SCHEMA, LoadEvent, LoadRun, RUN_SCHEMA, Run, SWEEP_SCHEMA,
    Sweep, SweepEvent,
};

/// A results folder that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such folder.
    #[error("{0} does not exist; give the folder of a run, e.g. results/<time>-…")]
    Missing(PathBuf),
    /// A folder of something else.
    #[error(
        "{0} is not a run: it has no run.json and no events.jsonl; give the folder of a run, e.g. \
         results/<time>-…"
    )]
    NotARun(PathBuf),
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}; give the folder of a run, e.g. results/<time>-…")]
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
    #[error(
        "{path}: schema is {found:?}; this flashrig reads {RUN_SCHEMA:?}, {LOAD_SCHEMA:?} and {SWEEP_SCHEMA:?}"
    )]
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

/// A run of any kind, as it is stored in `run.json`.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
pub enum Stored {
    /// `pair`.
    Pair(Box<Run>),
    /// `fit` and `ttft`.
    Load(Box<LoadRun>),
    /// `sweep`, which has a schema of its own.
    #[schemars(skip)]
    Sweep(Box<Sweep>),
}

impl Stored {
    /// The record as JSON, indented.
    ///
    /// # Errors
    /// A value in it has no form in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        match self {
            Self::Pair(run) => run.to_json(),
            Self::Load(run) => run.to_json(),
            Self::Sweep(run) => run.to_json(),
        }
    }
}

/// A line of `events.jsonl` of a run of any kind.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
pub enum StoredEvent {
    /// `pair`.
    Pair(Box<Event>),
    /// `fit` and `ttft`.
    Load(Box<LoadEvent>),
    /// `sweep`.
    Sweep(Box<SweepEvent>),
}

/// Reads the record of a run: `run.json` when it is there, else what `events.jsonl` tells.
///
/// # Errors
/// See [`ReadError`].
pub fn read_run(folder: &Path) -> Result<Stored, ReadError> {
    let folder = folder_of(folder)?;
    let path = folder.join("run.json");
    let events = folder.join("events.jsonl");
    match fs::read_to_string(&path) {
        Ok(text) => {
            let value = versioned(&path, &text)?;
            Ok(match Sort::of(&value) {
                Sort::Pair => Stored::Pair(Box::new(parse(&path, &text)?)),
                Sort::Load => Stored::Load(Box::new(parse(&path, &text)?)),
                Sort::Sweep => Stored::Sweep(Box::new(parse(&path, &text)?)),
            })
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(match begins_as(&events)? {
            Sort::Pair => Stored::Pair(Box::new(fold(&events)?.0)),
            Sort::Load => Stored::Load(Box::new(fold(&events)?.0)),
            Sort::Sweep => Stored::Sweep(Box::new(fold(&events)?.0)),
        }),
        Err(source) => Err(ReadError::Unreadable { path, source }),
    }
}

/// The folder of a run that is given by itself or by its `run.json`.
fn folder_of(given: &Path) -> Result<&Path, ReadError> {
    let folder = match given.parent() {
        Some(parent) if given.is_file() && given.ends_with("run.json") => parent,
        _ => given,
    };
    if !folder.exists() {
        return Err(ReadError::Missing(folder.to_owned()));
    }
    if !is_results_folder(folder) {
        return Err(ReadError::NotARun(folder.to_owned()));
    }
    Ok(folder)
}

/// The results folder that is meant by `folder`: itself, or, when it is none, the newest of those
/// that it holds, such as the one run of a unit of a sweep.
pub fn results_folder(folder: &Path) -> PathBuf {
    if is_results_folder(folder) {
        return folder.to_owned();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let held = entries.map(|entry| entry.path());
    // Their names begin with the time.
    let newest = held.filter(|path| is_results_folder(path)).max();
    newest.unwrap_or_else(|| folder.to_owned())
}

fn is_results_folder(folder: &Path) -> bool {
    folder.join("run.json").is_file() || folder.join("events.jsonl").is_file()
}

/// Which sort of record it is.
#[derive(Clone, Copy)]
enum Sort {
    Pair,
    Load,
    Sweep,
}

impl Sort {
    fn of(record: &Value) -> Self {
        match record.get("command").and_then(Value::as_str) {
            Some("sweep") => Self::Sweep,
            Some(command) if LOAD_COMMANDS.contains(&command) => Self::Load,
            _ => Self::Pair,
        }
    }
}

/// The version first: a later format may lack fields that this one needs.
fn versioned(path: &Path, text: &str) -> Result<Value, ReadError> {
    let value: Value = serde_json::from_str(text).map_err(|e| invalid(path, &e))?;
    let found = value
        .get("schema")
        .and_then(|s| s.as_str())
        .unwrap_or_default();
    if ![RUN_SCHEMA, LOAD_SCHEMA, SWEEP_SCHEMA].contains(&found) {
        return Err(ReadError::Schema {
            path: path.to_owned(),
            found: found.to_owned(),
        });
    }
    Ok(value)
}

fn parse<R: Kept>(path: &Path, text: &str) -> Result<R, ReadError> {
    R::from_json(text).map_err(|e| invalid(path, &e))
}

fn invalid(path: &Path, error: &serde_json::Error) -> ReadError {
    ReadError::Invalid {
        path: path.to_owned(),
        line: error.line(),
        message: error.to_string(),
    }
}

fn read_text(path: &Path) -> Result<String, ReadError> {
    fs::read_to_string(path).map_err(|source| ReadError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Which sort of run the first event starts.
fn begins_as(path: &Path) -> Result<Sort, ReadError> {
    let text = read_text(path)?;
    let first = text.lines().next().unwrap_or_default();
    let event: Option<Value> = serde_json::from_str(first).ok();
    let record = event.as_ref().and_then(|e| e.pointer("/what/run"));
    Ok(record.map_or(Sort::Pair, Sort::of))
}

/// Folds the events; the second is the instant of the last one. The last line may be cut off: the
/// rig was killed while writing it.
pub(super) fn fold<R: Kept>(path: &Path) -> Result<(R, Seconds), ReadError> {
    let text = read_text(path)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut run = None;
    let mut last = Seconds(0.0);
    for (index, line) in lines.iter().enumerate() {
        match R::event_from_json(line) {
            Ok(event) => {
                last = R::at(&event);
                R::apply(&mut run, event);
            }
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
    let run = run.ok_or_else(|| ReadError::Empty {
        path: path.to_owned(),
    })?;
    Ok((run, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_sweeps_unit_stands_for_the_newest_results_folder_in_it() {
        let unit = tempfile::tempdir().unwrap();
        let unit = unit.path();
        assert_eq!(results_folder(unit), unit);
        for name in ["20260101T000000Z-ttft", "20260102T000000Z-ttft", "other"] {
            fs::create_dir(unit.join(name)).unwrap();
        }
        assert_eq!(results_folder(unit), unit);
        let (old, new) = (
            unit.join("20260101T000000Z-ttft"),
            unit.join("20260102T000000Z-ttft"),
        );
        fs::write(old.join("run.json"), "{}").unwrap();
        assert_eq!(results_folder(unit), old);
        fs::write(new.join("events.jsonl"), "").unwrap();
        assert_eq!(results_folder(unit), new);
        assert_eq!(results_folder(&old), old);
    }
}
