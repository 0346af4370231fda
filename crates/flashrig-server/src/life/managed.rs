//! Starting a server for a run: flags held against the program, files hashed, process ready.

use std::path::{Path, PathBuf};

use super::Life;
use super::error::StartError;
use super::flags::{FlagCheck, FlagError, check};
use super::hashes::hashed;
use super::keeper::start;
use super::launch::{HOST, Launch, Valued};
use super::version::program_version;
use crate::log::LogIndex;
use crate::profiles::{Places, Recipe, Target};
use flashrig_http::Door;
use flashrig_record::{Managed, NamedFile};

/// A server that was started.
pub(crate) struct Started {
    pub(crate) life: Life,
    pub(crate) url: String,
    pub(crate) model: Option<String>,
    pub(crate) valued: Vec<Valued>,
    /// What the record says of it; of its variables nothing yet.
    pub(crate) record: Managed,
}

/// Starts it.
///
/// # Errors
/// See [`StartError`]. Nothing is left running.
pub(crate) async fn begin(
    recipe: &Recipe,
    places: &Places,
    log_index: LogIndex,
    door: &Door,
) -> Result<Started, StartError> {
    let launch = Launch::new(recipe.clone(), places.clone())?;
    let checked = check(&launch).await?;
    let program_version = program_version(&launch).await;
    let (program, files) = known(&launch).await;
    let (life, port, ready_after) = start(launch.clone(), log_index, door).await?;
    let model = model_of(&files);
    let mut command_line = vec![launch.program.display().to_string()];
    command_line.extend(launch.args(port));
    Ok(Started {
        url: format!("http://{HOST}:{port}"),
        model: launch.model.clone(),
        record: Managed {
            command_line,
            environment: launch.environment(port),
            program_version,
            program_sha256: program,
            model_file: model.map(|file| file.path.clone()),
            model_sha256: model.and_then(|file| file.sha256.clone()),
            model_bytes: model.and_then(|file| file.bytes),
            pid: life.pid(),
            flags_not_checked: match checked {
                FlagCheck::AllKnown => None,
                FlagCheck::NotChecked { because } => Some(because),
            },
            ready_after_s: ready_after.into(),
            variables: Vec::new(),
            files,
        },
        valued: launch.valued,
        life,
    })
}

/// The program and the files that would be started, each with its hash; nothing for a server that
/// flashrig does not start as a program.
///
/// # Errors
/// It cannot be started here at all.
pub async fn files_of(target: &Target) -> Result<Vec<NamedFile>, FlagError> {
    let Target::Managed { recipe, places, .. } = target else {
        return Ok(Vec::new());
    };
    let launch = Launch::new((**recipe).clone(), (**places).clone())?;
    let (sha256, files) = known(&launch).await;
    let program = NamedFile {
        variable: "program".to_owned(),
        path: launch.program.display().to_string(),
        bytes: None,
        sha256,
    };
    Ok(std::iter::once(program).chain(files).collect())
}

/// The model among the files: the variable of that name, or the only file.
fn model_of(files: &[NamedFile]) -> Option<&NamedFile> {
    let named = files.iter().find(|file| file.variable == "model");
    named.or(match files {
        [only] => Some(only),
        _ => None,
    })
}

/// The hash of the program, and the files that variables name with theirs.
async fn known(launch: &Launch) -> (Option<String>, Vec<NamedFile>) {
    let cache = launch.places.cache.clone();
    let program = launch.program.clone();
    let named: Vec<(String, PathBuf)> = launch
        .valued
        .iter()
        .filter_map(|v| Some((v.name.clone(), v.file.clone()?)))
        .collect();
    let hashing = tokio::task::spawn_blocking(move || {
        let hash = |path: &Path| match hashed(path, &cache) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot be hashed");
                None
            }
        };
        let files = named.into_iter().map(|(variable, path)| {
            let found = hash(&path);
            NamedFile {
                variable,
                path: path.display().to_string(),
                bytes: found.as_ref().map(|f| f.bytes),
                sha256: found.map(|f| f.sha256),
            }
        });
        let files = files.collect();
        (hash(&program).map(|found| found.sha256), files)
    });
    hashing.await.unwrap_or_default()
}
