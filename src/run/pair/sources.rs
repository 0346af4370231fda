//! The users' own repositories, which agents get copies of and must leave alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::context::Context;
use crate::plan::SessionPlan;
use crate::task::Source;
use flashrig_process::Sandbox;
use flashrig_record::SessionDetail;
use flashrig_workspace::Fingerprint;

/// How the users' own repositories looked before an arm.
pub struct Sources(BTreeMap<PathBuf, Fingerprint>);

/// The repositories that changed during an arm and that its agents could write to.
pub struct Escapes(BTreeMap<PathBuf, SessionDetail>);

impl Sources {
    /// Looks at every repository that a task of the plan is taken from.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn look(context: &Context) -> anyhow::Result<Self> {
        let paths = context.plan.sessions.iter().filter_map(repository);
        let mut found = BTreeMap::new();
        for path in paths {
            if !found.contains_key(path) {
                found.insert(path.to_owned(), fingerprint(context, path)?);
            }
        }
        Ok(Self(found))
    }

    /// What changed since, once every session is gone. In a sandbox no agent can have done it:
    /// then it is a note, once in a run, and no escape.
    ///
    /// # Errors
    /// A repository cannot be read.
    pub fn escapes(&self, context: &Context) -> anyhow::Result<Escapes> {
        let mut escapes = BTreeMap::new();
        for (path, before) in &self.0 {
            let changes = before.differences(&fingerprint(context, path)?);
            if changes.is_empty() {
                continue;
            }
            let escaped = SessionDetail::Escaped {
                repository: path.display().to_string(),
                changes,
            };
            match context.sandbox {
                Sandbox::Bubblewrap { .. } => context.note_once(format!(
                    "{escaped}. The sandbox does not let agents write there, so this is not a \
                     failure"
                )),
                Sandbox::ProcessGroup => {
                    escapes.insert(path.clone(), escaped);
                }
            }
        }
        Ok(Escapes(escapes))
    }
}

impl Escapes {
    /// What changed in the repository that the session's task is taken from.
    pub fn of(&self, plan: &SessionPlan) -> Option<SessionDetail> {
        self.0.get(repository(plan)?).cloned()
    }
}

fn repository(plan: &SessionPlan) -> Option<&Path> {
    match &plan.task.source {
        Source::Fixture(_) => None,
        Source::Repository { path, .. } => Some(path),
    }
}

/// Whatever flashrig itself writes is left out: all results, scratch folders, its cache.
fn fingerprint(context: &Context, path: &Path) -> anyhow::Result<Fingerprint> {
    let results = context.results.ancestors().take(2);
    let scratch = context.scratch.path().ancestors().take(2);
    let ours = results
        .chain(scratch)
        .chain([context.places.cache.as_path()]);
    let ours: Vec<_> = ours.map(Path::to_owned).collect();
    Ok(Fingerprint::without(path, &ours)?)
}
