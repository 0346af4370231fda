//! `flashrig bodies`: the kept bodies of a run, listed or printed.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use crate::store::{BODIES_FILE, BodyKind, BodyLine, Omitted, read_bodies};
use flashrig_config::unknown;

/// `flashrig bodies`.
#[derive(Clone, Debug, Args)]
pub struct BodiesArgs {
    /// The folder of the run
    pub run: PathBuf,
    /// The session's folder below sessions/, e.g. r1-together-fix-bug [default: list all]
    pub session: Option<String>,
    /// The request's number, as in requests.jsonl; its body is printed as it was sent [default:
    /// list all]
    pub number: Option<u32>,
    /// Print the answer's body instead
    #[arg(long, requires = "number")]
    pub response: bool,
}

/// A line of the list.
#[derive(Serialize)]
struct Listed {
    session: String,
    #[serde(flatten)]
    body: BodyLine,
}

/// Runs the command.
pub fn bodies(args: &BodiesArgs, console: Console) -> Result<Exit, Failure> {
    let sessions = sessions(args)?;
    if let (Some(number), [session]) = (args.number, &sessions[..]) {
        return print_one(args, session, number, console);
    }
    let mut list = Vec::new();
    for name in sessions {
        let path = file(&args.run, &name);
        let take = |body, _| {
            list.push(Listed {
                session: name.clone(),
                body,
            });
            true
        };
        if !read_bodies(&path, take).or_usage()? {
            console.note(&cut_off(&path));
        }
    }
    if console.json() {
        console.json_result(&list).or_rig()?;
    } else {
        console.result(&table(&list).to_string());
    }
    Ok(Exit::Yes)
}

/// The session asked for, or all that have bodies.
fn sessions(args: &BodiesArgs) -> Result<Vec<String>, Failure> {
    let folder = args.run.join("sessions");
    let mut names = Vec::new();
    let entries = std::fs::read_dir(&folder).map_err(|e| {
        usage(format!(
            "{} cannot be read: {e}; bodies are kept by flashrig pair alone: give the folder of \
             such a run, e.g. results/<time>-pair-…",
            folder.display()
        ))
    })?;
    for entry in entries {
        let entry = entry.or_rig()?;
        if entry.path().join(BODIES_FILE).is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let Some(wanted) = &args.session else {
        return Ok(names);
    };
    if names.contains(wanted) {
        return Ok(vec![wanted.clone()]);
    }
    let kind = format!("session with bodies in {}:", args.run.display());
    Err(usage(unknown(
        &kind,
        wanted,
        names.iter().map(String::as_str),
    )))
}

fn print_one(
    args: &BodiesArgs,
    session: &str,
    number: u32,
    console: Console,
) -> Result<Exit, Failure> {
    let kind = if args.response {
        BodyKind::Response
    } else {
        BodyKind::Request
    };
    let path = file(&args.run, session);
    let mut found = None;
    let take = |line: BodyLine, body| {
        if (line.number, line.kind) != (number, kind) {
            return true;
        }
        found = Some((line, body));
        false
    };
    let whole = read_bodies(&path, take).or_usage()?;
    let what = match kind {
        BodyKind::Request => format!("request {number}"),
        BodyKind::Response => format!("answer {number}"),
    };
    let Some((line, body)) = found else {
        let cut = if whole {
            String::new()
        } else {
            format!("; {}", cut_off(&path))
        };
        return Err(usage(format!(
            "{what} of {session} has no body in {}; `flashrig bodies {}` lists what there is{cut}",
            path.display(),
            args.run.display()
        )));
    };
    if let Some(why) = line.omitted {
        let message = format!("{what} of {session}: {}", omitted_message(why));
        if line.stored == 0 {
            return Err(usage(message));
        }
        console.note(&message);
    }
    console.raw_result(&body);
    Ok(Exit::Yes)
}

fn file(run: &Path, session: &str) -> PathBuf {
    run.join("sessions").join(session).join(BODIES_FILE)
}

fn cut_off(path: &Path) -> String {
    format!(
        "{} ends early: its run goes on, or flashrig was killed",
        path.display()
    )
}

fn omitted_message(why: Omitted) -> &'static str {
    match why {
        Omitted::NotKept => "not kept (--no-bodies); its length and hash are known",
        Omitted::Encoded => "not kept, because it was compressed; its length and hash are known",
        Omitted::TooLong => "only its beginning was kept",
        Omitted::Dropped => "not kept, because the disk was too slow",
    }
}

fn table(list: &[Listed]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["session", "number", "body", "bytes", "sha-256", ""]);
    for index in [1, 3] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for Listed { session, body } in list {
        let mut notes: Vec<&str> = body.omitted.map(omitted_message).into_iter().collect();
        if body.redacted {
            notes.push("secrets taken out");
        }
        let kind = match body.kind {
            BodyKind::Request => "request",
            BodyKind::Response => "answer",
        };
        table.add_row([
            session.clone(),
            body.number.to_string(),
            kind.to_owned(),
            body.length.to_string(),
            body.sha256
                .as_deref()
                .unwrap_or("–")
                .chars()
                .take(16)
                .collect(),
            notes.join("; "),
        ]);
    }
    table
}
