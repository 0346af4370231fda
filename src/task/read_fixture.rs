//! From `fixture.toml`, `tree/` and the overlays to a [`Fixture`].

use std::collections::BTreeMap;

use super::folder::Folder;
use super::raw::{CommitEntry, FIXTURE_SCHEMA, FixtureFile as RawFixture};
use super::{Fixture, FixtureCommit, FixtureFile, paths};
use flashrig_config::{Document, FileError};

const FILE: &str = "fixture.toml";
const TREE: &str = "tree";

/// Files by path, as they stand at some point of the history.
type Tree = BTreeMap<String, Vec<u8>>;

/// Reads the fixture in `folder`.
pub(super) fn read(name: &str, folder: &Folder) -> Result<Fixture, FileError> {
    let (raw, document) = folder.document::<RawFixture>(FILE, FIXTURE_SCHEMA)?;
    if raw.title.trim().is_empty() {
        return Err(document.error("title", "is empty; say in one line what the program is"));
    }
    if raw.commits.is_empty() {
        return Err(document.error("commits", "is empty; a fixture has at least one commit"));
    }
    let tree = read_files(&folder.folder(TREE))?;
    if tree.is_empty() {
        return Err(FileError::whole(
            folder.show(TREE),
            "the folder is missing or empty",
        ));
    }

    let mut globs = Vec::new();
    for (index, text) in raw.executable.iter().enumerate() {
        let field = format!("executable[{index}]");
        let glob = paths::glob(text).map_err(|e| document.error(&field, e))?;
        if !tree
            .keys()
            .any(|path| glob.compile_matcher().is_match(path))
        {
            return Err(document.error(&field, format!("no file of {TREE}/ matches `{text}`")));
        }
        globs.push(glob);
    }
    let executable = paths::glob_set(globs).map_err(|e| document.error("executable", e))?;

    let mut history = History {
        folder,
        document: &document,
        tree: &tree,
        now: Tree::new(),
    };
    let mut commits: Vec<FixtureCommit> = Vec::new();
    for (index, entry) in raw.commits.iter().enumerate() {
        let field = |name: &str| format!("commits[{index}].{name}");
        for (name, text) in [
            ("author", &entry.author),
            ("email", &entry.email),
            ("message", &entry.message),
        ] {
            if text.trim().is_empty() {
                return Err(document.error(field(name), "is empty"));
            }
            if name != "message" && text.contains(['<', '>', '\n']) {
                return Err(document.error(field(name), "holds a character that git refuses"));
            }
        }
        let time = read_date(&entry.date).map_err(|e| document.error(field("date"), e))?;
        if commits.last().is_some_and(|previous| time < previous.time) {
            let problem = "lies before the commit above it; commits stand oldest first";
            return Err(document.error(field("date"), problem));
        }

        history.apply(index, entry)?;
        commits.push(FixtureCommit {
            author: entry.author.trim().to_owned(),
            email: entry.email.trim().to_owned(),
            time,
            message: format!("{}\n", entry.message.trim()),
            files: history
                .now
                .iter()
                .map(|(path, bytes)| FixtureFile {
                    path: path.clone(),
                    bytes: bytes.clone(),
                    executable: executable.is_match(path),
                })
                .collect(),
        });
    }
    history.must_be_complete(raw.commits.len() - 1)?;
    Ok(Fixture {
        name: name.to_owned(),
        title: raw.title.trim().to_owned(),
        commits,
    })
}

struct History<'a> {
    folder: &'a Folder,
    document: &'a Document,
    /// The final tree.
    tree: &'a Tree,
    /// The tree after the commits applied so far.
    now: Tree,
}

impl History<'_> {
    fn apply(&mut self, index: usize, entry: &CommitEntry) -> Result<(), FileError> {
        let before = self.now.clone();
        for (n, text) in entry.files.iter().enumerate() {
            let error = |e: String| {
                self.document
                    .error(format!("commits[{index}].files[{n}]"), e)
            };
            let glob = paths::glob(text).map_err(error)?.compile_matcher();
            let mut found = false;
            for (path, bytes) in self.tree.iter().filter(|(path, _)| glob.is_match(path)) {
                self.now.insert(path.clone(), bytes.clone());
                found = true;
            }
            if !found {
                return Err(error(format!("no file of {TREE}/ matches `{text}`")));
            }
        }
        if let Some(path) = &entry.overlay {
            let error = |e: String| self.document.error(format!("commits[{index}].overlay"), e);
            paths::inside(path).map_err(error)?;
            let overlay = read_files(&self.folder.folder(path))?;
            if overlay.is_empty() {
                let shown = self.folder.show(path);
                return Err(error(format!("the folder {shown} is missing or empty")));
            }
            self.now.extend(overlay);
        }
        for (n, path) in entry.delete.iter().enumerate() {
            if self.now.remove(path).is_none() {
                let problem = format!("there is no file `{path}` at this point of the history");
                return Err(self
                    .document
                    .error(format!("commits[{index}].delete[{n}]"), problem));
            }
        }
        if self.now == before {
            return Err(self
                .document
                .error(format!("commits[{index}]"), "changes nothing"));
        }
        Ok(())
    }

    /// What a session starts from must be what a reader of the fixture finds under `tree/`.
    fn must_be_complete(&self, last: usize) -> Result<(), FileError> {
        let missing = self.tree.keys().find(|path| !self.now.contains_key(*path));
        let extra = self.now.keys().find(|path| !self.tree.contains_key(*path));
        let older = self
            .tree
            .iter()
            .find(|(path, bytes)| self.now.get(*path) != Some(bytes));
        let problem = if let Some(path) = missing {
            format!("`{path}` is in {TREE}/ but in no commit; add it to `files`")
        } else if let Some(path) = extra {
            format!("`{path}` is not in {TREE}/; remove it with `delete`")
        } else if let Some((path, _)) = older {
            format!("`{path}` is still an older version; add it to `files`")
        } else {
            return Ok(());
        };
        let problem = format!("the last commit must end with exactly {TREE}/: {problem}");
        Err(self.document.error(format!("commits[{last}]"), problem))
    }
}

/// All files of a folder, by the names that they have in the repository.
fn read_files(folder: &Folder) -> Result<Tree, FileError> {
    let mut files = Tree::new();
    for (path, bytes) in folder.files()? {
        let name = path.strip_suffix(".in").unwrap_or(&path).to_owned();
        paths::inside(&name).map_err(|e| FileError::whole(folder.show(&path), e))?;
        if files.insert(name.clone(), bytes).is_some() {
            let problem = format!("stands beside `{name}.in`, which becomes the same file");
            return Err(FileError::whole(folder.show(&name), problem));
        }
    }
    Ok(files)
}

/// Seconds since the epoch. Only UTC is read, so that object ids are the same everywhere.
fn read_date(text: &str) -> Result<i64, String> {
    let time: Option<jiff::Timestamp> = text.parse().ok();
    match time {
        Some(time) if text.ends_with('Z') => Ok(time.as_second()),
        _ => Err(format!(
            "`{text}` is not a time in UTC; write it like `2024-03-01T09:30:00Z`"
        )),
    }
}
