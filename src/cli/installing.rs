//! `flashrig servers install`.

use std::path::Path;

use anyhow::anyhow;
use serde::Serialize;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::setting::Setting;
use super::signals;
use crate::run::Stop;
use flashrig_server::install::{self, Manifest, Surroundings};

#[derive(Serialize)]
struct Row {
    name: String,
    version: String,
    folder: String,
    bytes: u64,
    was_there: bool,
}

/// Runs the command.
pub async fn install_servers(names: &[String], console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let around = Surroundings {
        operator: &setting.places.operator,
        cache: &setting.places.cache,
        shim: &setting.shim,
    };
    let mut manifests = Vec::new();
    for name in names {
        manifests.push(Manifest::named(name).ok_or_else(|| {
            usage(format!(
                "flashrig does not install {name:?}; it installs {}",
                install::names().join(" and ")
            ))
        })?);
    }
    let (stopper, mut stop) = Stop::new();
    let watching = tokio::spawn(signals::watch(
        console,
        "stopping the installation",
        stopper,
    ));
    let mut rows = Vec::new();
    for manifest in &manifests {
        let name = manifest.name();
        let say = |message: &str| console.note(&format!("{name}: {message}"));
        let done = tokio::select! {
            done = install::install(manifest, around, say) => done.or_rig()?,
            // What is dropped here ends what runs, and removes what it wrote.
            () = stop.wait() => return Err(Failure {
                exit: Exit::Interrupted,
                error: anyhow!("stopped before {name} was installed; nothing half installed is left"),
            }),
        };
        let row = Row {
            name: name.to_owned(),
            version: done.version,
            bytes: folder_bytes(&done.folder),
            folder: done.folder.display().to_string(),
            was_there: done.was_there,
        };
        if !console.json() {
            console.result(&format!(
                "{name} {}, {} MB, {} {}",
                row.version,
                row.bytes.div_ceil(1_000_000),
                if row.was_there {
                    "is there already:"
                } else {
                    "installed in"
                },
                row.folder
            ));
        }
        rows.push(row);
    }
    watching.abort();
    if console.json() {
        console.json_result(&rows).or_rig()?;
    }
    Ok(Exit::Yes)
}

/// Bytes of all files below a folder; links count as themselves.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}
