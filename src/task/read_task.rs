//! From `task.toml` and the files beside it to a [`Task`].

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use super::folder::Folder;
use super::places::Places;
use super::raw::{BeforeEntry, CheckEntry, TASK_SCHEMA, TaskFile};
use super::{
    Before, Cheat, Check, DiffLimit, HiddenFile, Source, Task, paths, read_fixture,
    read_walkthrough,
};
use flashrig_config::{Document, FileError, parse_duration, unknown};

const FILE: &str = "task.toml";
const PROMPT: &str = "prompt.md";
const SOLUTION: &str = "solution.patch";

/// Reads the task in `folder`.
pub(super) fn read(name: &str, folder: &Folder, fixtures: &Places) -> Result<Task, FileError> {
    let (raw, document) = folder.document::<TaskFile>(FILE, TASK_SCHEMA)?;
    let reader = Reader {
        folder,
        document: &document,
    };

    if raw.title.trim().is_empty() {
        return Err(document.error("title", "is empty; say in one line what the task is"));
    }
    let source = reader.source(&raw, fixtures)?;
    let prompt = folder.text(PROMPT)?.trim().to_owned();
    if prompt.is_empty() {
        return Err(FileError::whole(
            folder.show(PROMPT),
            "is empty; say what the agent is to do",
        ));
    }
    for (index, program) in raw.needs.iter().enumerate() {
        if program.trim().is_empty() || program.contains('/') {
            let problem = format!("`{program}` is not the name of a program on PATH");
            return Err(document.error(format!("needs[{index}]"), problem));
        }
    }

    let mut globs = Vec::new();
    for (field, texts) in [("protected", &raw.protected), ("forbidden", &raw.forbidden)] {
        for (index, text) in texts.iter().enumerate() {
            let glob = paths::glob(text);
            globs.push(glob.map_err(|e| document.error(format!("{field}[{index}]"), e))?);
        }
    }
    let protected = paths::glob_set(globs).map_err(|e| document.error("protected", e))?;

    Ok(Task {
        name: name.to_owned(),
        folder: folder.project_folder(name),
        title: raw.title.trim().to_owned(),
        prompt,
        needs: raw.needs.clone(),
        time_limit: reader.time_limit("time_limit", &raw.time_limit)?,
        protected,
        protected_globs: raw.protected.clone(),
        hidden: reader.hidden(&raw)?,
        checks: reader.checks(&raw.checks)?,
        diff_limit: reader.diff_limit(&raw)?,
        solution: read_patch(folder, SOLUTION)?,
        cheats: reader.cheats(&raw)?,
        walkthrough: read_walkthrough::read(folder, &source)?,
        source,
    })
}

struct Reader<'a> {
    folder: &'a Folder,
    document: &'a Document,
}

impl Reader<'_> {
    fn source(&self, raw: &TaskFile, fixtures: &Places) -> Result<Source, FileError> {
        match (&raw.fixture, &raw.repo, &raw.rev) {
            (Some(fixture), None, None) => self.fixture(fixture, fixtures),
            (None, Some(repo), Some(rev)) => self.repository(repo, rev),
            (None, None, None) => Err(self.document.missing(
                "fixture",
                "name a fixture, or a repository with `repo` and `rev`",
            )),
            (None, Some(_), None) => Err(self
                .document
                .missing("rev", "`repo` needs a revision to start from")),
            (_, None, Some(_)) => Err(self
                .document
                .error("rev", "has no effect without `repo`; remove it")),
            (Some(_), Some(_), _) => {
                let problem = "stands beside `fixture`; a task starts from one of the two";
                Err(self.document.error("repo", problem))
            }
        }
    }

    fn fixture(&self, name: &str, fixtures: &Places) -> Result<Source, FileError> {
        match fixtures.find(name)? {
            Some(folder) => Ok(Source::Fixture(read_fixture::read(name, &folder)?)),
            None => {
                let known = fixtures.names()?;
                let problem = unknown("fixture", name, known.iter().map(String::as_str));
                Err(self.document.error("fixture", problem))
            }
        }
    }

    fn repository(&self, repo: &str, rev: &str) -> Result<Source, FileError> {
        if rev.trim().is_empty() || rev.starts_with('-') {
            return Err(self
                .document
                .error("rev", format!("`{rev}` is not a revision")));
        }
        let path = match self.folder.on_disk() {
            Some(folder) => folder.join(repo),
            None if Path::new(repo).is_absolute() => Path::new(repo).to_owned(),
            None => {
                let problem = format!("`{repo}` is relative, which a built-in task cannot be");
                return Err(self.document.error("repo", problem));
            }
        };
        if repo.is_empty() || !path.is_dir() {
            let problem = format!("there is no folder {}", path.display());
            return Err(self.document.error("repo", problem));
        }
        Ok(Source::Repository {
            path,
            revision: rev.to_owned(),
        })
    }

    fn time_limit(&self, field: &str, text: &str) -> Result<Duration, FileError> {
        match parse_duration(text) {
            Ok(limit) if limit.is_zero() => Err(self
                .document
                .error(field, format!("`{text}` leaves no time at all"))),
            Ok(limit) => Ok(limit),
            Err(e) => Err(self.document.error(field, e.to_string())),
        }
    }

    fn hidden(&self, raw: &TaskFile) -> Result<Vec<HiddenFile>, FileError> {
        let mut seen = HashSet::new();
        let mut files = Vec::new();
        for (index, entry) in raw.hidden.iter().enumerate() {
            let field = |name: &str| format!("hidden[{index}].{name}");
            let bytes = self.file(&field("from"), &entry.from)?;
            paths::inside(&entry.to).map_err(|e| self.document.error(field("to"), e))?;
            if !seen.insert(&entry.to) {
                let problem = format!("`{}` is written to twice", entry.to);
                return Err(self.document.error(field("to"), problem));
            }
            files.push(HiddenFile {
                to: entry.to.clone(),
                bytes,
            });
        }
        Ok(files)
    }

    fn checks(&self, raw: &[CheckEntry]) -> Result<Vec<Check>, FileError> {
        if raw.is_empty() {
            let problem = "is empty; without a check nothing tells whether the task is done";
            return Err(self.document.error("checks", problem));
        }
        let mut seen = HashSet::new();
        let mut checks = Vec::new();
        for (index, entry) in raw.iter().enumerate() {
            let field = |name: &str| format!("checks[{index}].{name}");
            self.name(&field("name"), &entry.name, &mut seen)?;
            let run = shell_words::split(&entry.run).map_err(|e| {
                self.document
                    .error(field("run"), format!("cannot be split: {e}"))
            })?;
            if run.first().is_none_or(String::is_empty) {
                return Err(self.document.error(field("run"), "names no program"));
            }
            let must_print = entry
                .must_print
                .as_deref()
                .map(regex::Regex::new)
                .transpose();
            checks.push(Check {
                name: entry.name.clone(),
                run,
                time_limit: self.time_limit(&field("time_limit"), &entry.time_limit)?,
                before: match entry.before {
                    BeforeEntry::Pass => Before::Pass,
                    BeforeEntry::Fail => Before::Fail,
                },
                must_print: must_print
                    .map_err(|e| self.document.error(field("must_print"), regex_problem(&e)))?,
            });
        }
        if !checks.iter().any(|check| check.before == Before::Fail) {
            let problem = "holds none with `before = \"fail\"`; the untouched repository would do";
            return Err(self.document.error("checks", problem));
        }
        Ok(checks)
    }

    fn diff_limit(&self, raw: &TaskFile) -> Result<DiffLimit, FileError> {
        let limits = [
            ("diff.max_files", raw.diff.max_files),
            ("diff.max_lines", raw.diff.max_lines),
        ];
        if let Some((field, _)) = limits.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(self
                .document
                .error(*field, "is 0, which no solution can keep to"));
        }
        Ok(DiffLimit {
            files: raw.diff.max_files,
            lines: raw.diff.max_lines,
        })
    }

    fn cheats(&self, raw: &TaskFile) -> Result<Vec<Cheat>, FileError> {
        let mut seen = HashSet::new();
        let mut cheats = Vec::new();
        for (index, entry) in raw.cheats.iter().enumerate() {
            self.name(&format!("cheats[{index}].name"), &entry.name, &mut seen)?;
            self.file(&format!("cheats[{index}].patch"), &entry.patch)?;
            let patch = read_patch(self.folder, &entry.patch)?;
            cheats.push(Cheat {
                name: entry.name.clone(),
                patch,
            });
        }
        Ok(cheats)
    }

    /// Checks a short name: it becomes part of file names and messages.
    fn name<'n>(
        &self,
        field: &str,
        name: &'n str,
        seen: &mut HashSet<&'n str>,
    ) -> Result<(), FileError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            let problem = format!("`{name}` is not a name; use letters, digits, `-` and `_`");
            return Err(self.document.error(field, problem));
        }
        if !seen.insert(name) {
            return Err(self
                .document
                .error(field, format!("`{name}` is there twice")));
        }
        Ok(())
    }

    /// A file of the task's folder that a field names.
    fn file(&self, field: &str, path: &str) -> Result<Vec<u8>, FileError> {
        paths::inside(path).map_err(|e| self.document.error(field, e))?;
        self.folder.read(path)?.ok_or_else(|| {
            let problem = format!("there is no file {}", self.folder.show(path));
            self.document.error(field, problem)
        })
    }
}

/// Reads a unified diff. Whether it applies is for the verifier to find out.
fn read_patch(folder: &Folder, path: &str) -> Result<String, FileError> {
    let text = folder.text(path)?;
    let error = |problem: String| FileError::whole(folder.show(path), problem);
    match flashrig_workspace::patched_files(&text) {
        Err(e) => Err(error(format!("is not a patch that git can read: {e:#}"))),
        Ok(0) => Err(error("is a patch that changes no file".to_owned())),
        Ok(_) => Ok(text),
    }
}

/// The last line of a regex error says what is wrong; the others draw a picture of where.
fn regex_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or(&text);
    format!(
        "is not a regular expression: {}",
        last.trim_start_matches("error: ")
    )
}
