//! Filling a base's vault: from a fixture's plain files, or from a repository of the user's.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use git2::{ErrorCode, Oid, Repository, Signature, Time};

use super::copy::{self, Linking};
use super::error::{WorkspaceError, chain};
use super::flat::{self, EXECUTABLE, Entry, FILE, Flat};
use super::{git, paths};
use crate::{Fixture, FixtureCommit, Source};

/// Above the priorities of libgit2's own stores, which are 1 and 2.
const IN_MEMORY_FIRST: i32 = 100;

/// What a filled vault holds.
pub(super) struct Filled {
    pub(super) commit: Oid,
    pub(super) branch: String,
}

/// Brings the objects of `source` into the fresh bare repository `vault`.
pub(super) fn fill(vault: &Repository, source: &Source) -> Result<Filled, WorkspaceError> {
    match source {
        Source::Fixture(fixture) => {
            commit_all(vault, fixture).map_err(|error| WorkspaceError::BadFixture {
                name: fixture.name.clone(),
                reason: chain(&error),
            })
        }
        Source::Repository { path, revision } => bring(vault, path, revision),
    }
}

/// The objects are held in memory and written as one pack: a workspace is then a copy of two files
/// and not of a hundred folders, which ext4 is slow to make right after others were deleted.
fn commit_all(vault: &Repository, fixture: &Fixture) -> anyhow::Result<Filled> {
    let odb = vault.odb().context("cannot open its objects")?;
    let memory = odb
        .add_new_mempack_backend(IN_MEMORY_FIRST)
        .context("cannot hold its objects in memory")?;
    let mut parent: Option<Oid> = None;
    for (number, commit) in fixture.commits.iter().enumerate() {
        let id = commit_one(vault, commit, parent)
            .with_context(|| format!("commit {} of it is not usable", number + 1))?;
        parent = Some(id);
    }
    let commit = parent.context("it has no commit; give it at least one")?;
    let mut pack = git2::Buf::new();
    memory
        .dump(vault, &mut pack)
        .context("cannot pack its objects")?;
    let mut writer = odb.packwriter().context("cannot write its pack")?;
    writer.write_all(&pack).context("cannot write its pack")?;
    writer.commit().context("cannot write its pack")?;
    Ok(Filled {
        commit,
        branch: "main".into(),
    })
}

fn commit_one(
    vault: &Repository,
    commit: &FixtureCommit,
    parent: Option<Oid>,
) -> anyhow::Result<Oid> {
    let mut files = Flat::new();
    for file in &commit.files {
        if !paths::is_safe(file.path.as_bytes()) {
            bail!(
                "{:?} is not a relative path inside the fixture; correct it",
                file.path
            );
        }
        let id = vault
            .blob(&file.bytes)
            .with_context(|| format!("cannot store {}", file.path))?;
        let mode = if file.executable { EXECUTABLE } else { FILE };
        files.insert(file.path.clone().into_bytes(), Entry { mode, id });
    }
    let tree = vault.find_tree(flat::write(vault, &files)?)?;
    let who = Signature::new(&commit.author, &commit.email, &Time::new(commit.time, 0))
        .with_context(|| format!("{:?} <{}> is not an author", commit.author, commit.email))?;
    let parent = parent.map(|id| vault.find_commit(id)).transpose()?;
    let parents: Vec<_> = parent.iter().collect();
    vault
        .commit(None, &who, &who, &commit.message, &tree, &parents)
        .context("cannot commit it")
}

fn bring(vault: &Repository, path: &Path, revision: &str) -> Result<Filled, WorkspaceError> {
    let origin = git::open(path).map_err(|error| WorkspaceError::NotARepository {
        path: path.to_owned(),
        reason: reason(&error),
    })?;
    let (object, reference) = origin.revparse_ext(revision).map_err(|error| {
        let reason = match error.code() {
            ErrorCode::NotFound => "nothing in it has that name".to_owned(),
            _ => error.message().to_owned(),
        };
        WorkspaceError::NoSuchRevision {
            path: path.to_owned(),
            revision: revision.to_owned(),
            reason,
        }
    })?;
    let commit = object
        .peel_to_commit()
        .map_err(|_| WorkspaceError::NoSuchRevision {
            path: path.to_owned(),
            revision: revision.to_owned(),
            reason: "it names something that is not a commit".into(),
        })?;
    let branch = reference
        .and_then(|reference| reference.resolve().ok())
        .filter(git2::Reference::is_branch)
        .and_then(|reference| reference.shorthand().ok().map(str::to_owned))
        .unwrap_or_else(|| "flashrig".into());

    bring_objects(&origin, vault)
        .with_context(|| format!("cannot bring the objects of {}", path.display()))
        .map_err(WorkspaceError::storage)?;
    // Hide nothing but what was there: the objects arrived behind this handle's back.
    vault
        .odb()
        .and_then(|odb| odb.refresh())
        .context("cannot reread the objects")
        .map_err(WorkspaceError::storage)?;
    Ok(Filled {
        commit: commit.id(),
        branch,
    })
}

fn reason(error: &anyhow::Error) -> String {
    error
        .downcast_ref::<git2::Error>()
        .map_or_else(|| chain(error), |e| e.message().into())
}

/// Hard links where possible: the vault is never written to in place, and no agent sees it.
fn bring_objects(origin: &Repository, vault: &Repository) -> anyhow::Result<()> {
    let to = vault.path().join("objects");
    let mut stores = vec![origin.commondir().join("objects")];
    let mut seen: Vec<PathBuf> = Vec::new();
    while let Some(store) = stores.pop() {
        if seen.contains(&store) {
            continue;
        }
        merge_store(&store, &to)?;
        stores.extend(alternates(&store));
        seen.push(store);
    }
    let shallow = origin.commondir().join("shallow");
    if shallow.is_file() {
        fs::copy(&shallow, vault.path().join("shallow"))
            .context("cannot copy its shallow marks")?;
    }
    Ok(())
}

/// Object stores that `store` borrows from.
fn alternates(store: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_to_string(store.join("info/alternates")) else {
        return Vec::new();
    };
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| store.join(line))
        .collect()
}

/// Copies the folders of an object store one by one, since two stores may have the same ones.
fn merge_store(store: &Path, to: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot read folder {}", store.display());
    for entry in fs::read_dir(store).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name();
        // `info` holds the alternates and other hints that would point outside.
        if name == "info" || !entry.path().is_dir() {
            continue;
        }
        let target = to.join(&name);
        fs::create_dir_all(&target)
            .with_context(|| format!("cannot make folder {}", target.display()))?;
        let half_written = |path: &Path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.starts_with(b"tmp_")
                || name.ends_with(b".lock")
                || target.join(path.file_name().unwrap_or_default()).exists()
        };
        copy::folder(&entry.path(), &target, Linking::Everything, &half_written)?;
    }
    Ok(())
}
