//! Writing a results folder.

use flashrig_config::without_temporary_name;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::read::{ReadError, fold};
use flashrig_clock::Seconds;
use flashrig_record::{Attempt, Kept, RequestLine, Run};

/// A results folder that cannot be written. The run goes no further; what was written stays.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; free some space or choose another folder with --results")]
pub struct StoreError {
    path: PathBuf,
    source: io::Error,
}

/// A results folder that cannot be taken up again.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// What it holds cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] StoreError),
}

/// A results folder being written. `R` is what its events add up to.
#[derive(Debug)]
pub struct Store<R: Kept = Run> {
    folder: PathBuf,
    events: File,
    requests: Option<File>,
    /// How often requests of a combination were stored, by round and arm.
    cell_attempts: HashMap<(u32, String), u32>,
    run: Option<R>,
}

impl<R: Kept> Store<R> {
    /// Makes a new folder `<results>/<id>`; a number is appended when there is one already.
    ///
    /// # Errors
    /// The folder or its files cannot be made.
    pub fn create(results: &Path, id: &str) -> Result<Self, StoreError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError { path, source }
        };
        fs::create_dir_all(results).map_err(fail(results))?;
        let mut folder = results.join(id);
        let mut number = 2;
        loop {
            match fs::create_dir(&folder) {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                    folder = results.join(format!("{id}-{number}"));
                    number += 1;
                }
                Err(e) => return Err(fail(&folder)(e)),
            }
        }
        let open = |name: &str| {
            let path = folder.join(name);
            File::create(&path).map_err(fail(&path))
        };
        let events = open("events.jsonl")?;
        let requests = R::REQUESTS.then(|| open("requests.jsonl")).transpose()?;
        for name in R::FOLDERS {
            let inner = folder.join(name);
            fs::create_dir(&inner).map_err(fail(&inner))?;
        }
        Ok(Self {
            folder,
            events,
            requests,
            cell_attempts: HashMap::new(),
            run: None,
        })
    }

    /// Takes up a folder again: its record is what its events tell, and later events go on from
    /// there. A last line that was cut off by a kill is removed. The instant is that of the last
    /// event.
    ///
    /// # Errors
    /// It cannot be read, holds another kind of run, or cannot be written.
    pub fn reopen(folder: &Path) -> Result<(Self, Seconds), ReopenError> {
        let path = folder.join("events.jsonl");
        let (run, last) = fold::<R>(&path)?;
        let open = |name: &str| {
            let path = folder.join(name);
            open_whole_lines(&path).map_err(|source| StoreError { path, source })
        };
        let events = open("events.jsonl")?;
        let requests = R::REQUESTS.then(|| open("requests.jsonl")).transpose()?;
        let cell_attempts = match requests {
            Some(_) => cell_attempts(&folder.join("requests.jsonl"))?,
            None => HashMap::new(),
        };
        let store = Self {
            folder: folder.to_owned(),
            events,
            requests,
            cell_attempts,
            run: Some(run),
        };
        Ok((store, last))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder's name.
    pub fn id(&self) -> String {
        self.folder
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The record so far.
    pub fn run(&self) -> Option<&R> {
        self.run.as_ref()
    }

    /// Appends an event and brings `run.json` up to date.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn event(&mut self, event: R::Event) -> Result<(), StoreError> {
        append(
            &mut self.events,
            &self.folder.join("events.jsonl"),
            R::event_to_json(&event),
        )?;
        R::apply(&mut self.run, event);
        let path = self.folder.join("run.json");
        let Some(run) = &self.run else { return Ok(()) };
        let mut text = run.to_json().map_err(|e| StoreError {
            path: path.clone(),
            source: e.into(),
        })?;
        text.push('\n');
        write_atomically(&path, text.as_bytes())
    }

    /// Appends the requests of one session.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn requests(
        &mut self,
        round: u32,
        arm: &str,
        session: &str,
        attempts: &[Attempt],
    ) -> Result<(), StoreError> {
        let rows = attempts.iter().map(|attempt| (session, attempt));
        self.append_requests(round, arm, 1, rows)
    }

    /// Appends the requests of one combination, all sessions', as those of a further attempt when
    /// there are some of it already.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn cell_requests<'a>(
        &mut self,
        round: u32,
        arm: &str,
        rows: impl Iterator<Item = (&'a str, &'a Attempt)>,
    ) -> Result<(), StoreError> {
        let counted = self.cell_attempts.entry((round, arm.to_owned()));
        let number = counted.and_modify(|n| *n += 1).or_insert(1);
        let number = *number;
        self.append_requests(round, arm, number, rows)
    }

    fn append_requests<'a>(
        &mut self,
        round: u32,
        arm: &str,
        cell_attempt: u32,
        rows: impl Iterator<Item = (&'a str, &'a Attempt)>,
    ) -> Result<(), StoreError> {
        let path = self.folder.join("requests.jsonl");
        let Some(requests) = &mut self.requests else {
            return Ok(());
        };
        for (session, attempt) in rows {
            let line = RequestLine {
                round,
                arm: arm.to_owned(),
                session: session.to_owned(),
                cell_attempt,
                attempt: attempt.clone(),
            };
            append(requests, &path, serde_json::to_string(&line))?;
        }
        Ok(())
    }
}

/// How often requests of each combination stand in a file already: a kill may have left some whose
/// combination was not measured to its end.
fn cell_attempts(path: &Path) -> Result<HashMap<(u32, String), u32>, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        round: u32,
        arm: String,
        #[serde(default)]
        cell_attempt: Option<u32>,
    }
    let text = fs::read(path).map_err(|source| StoreError {
        path: path.to_owned(),
        source,
    })?;
    let mut found = HashMap::new();
    let rows = text.split(|byte| *byte == b'\n');
    for row in rows.filter_map(|line| serde_json::from_slice::<Row>(line).ok()) {
        let last: &mut u32 = found.entry((row.round, row.arm)).or_default();
        *last = (*last).max(row.cell_attempt.unwrap_or(1));
    }
    Ok(found)
}

/// Opens a file of lines for appending, without a last line that is not whole.
fn open_whole_lines(path: &Path) -> io::Result<File> {
    let text = fs::read(path)?;
    let whole = text
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let file = File::options().append(true).open(path)?;
    if whole < text.len() {
        file.set_len(whole as u64)?;
    }
    Ok(file)
}

/// One line, in one write, so that a kill never leaves half of one in the middle of the file.
fn append(
    file: &mut File,
    path: &Path,
    json: serde_json::Result<String>,
) -> Result<(), StoreError> {
    let fail = |source| StoreError {
        path: path.to_owned(),
        source,
    };
    let mut line = json.map_err(|e| fail(e.into()))?;
    line.push('\n');
    file.write_all(line.as_bytes()).map_err(fail)
}

/// Writes a file beside its place and renames it. Who may read it is up to the umask.
///
/// # Errors
/// The folder cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;
    let fail = |source| StoreError {
        path: path.to_owned(),
        source,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".flashrig-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(without_temporary_name)
        .map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}
