//! `flashrig tasks list|verify`.

use clap::Subcommand;
use serde::Serialize;

use super::args::SandboxArg;
use super::console::Console;
use super::exit::{Exit, Failure, OrFail};
use super::setting::{Setting, sandbox};
use crate::run::{Checks, Scratch};
use crate::task::{Library, Source};
use crate::verify::{Proof, ProofCase, ProofOutcome, ProofRow, prove};
use flashrig_config::plural;
use flashrig_record::CheckOutcome;
use flashrig_workspace::Base;

/// Lines of a failed check's output that are shown, and characters of each.
const SHOWN_LINES: usize = 12;
const SHOWN_CHARS: usize = 200;

/// `flashrig tasks`.
#[derive(Clone, Debug, Subcommand)]
pub enum TasksCommand {
    /// List the tasks
    List,
    /// Verify tasks: the untouched repository and every cheat must fail, the reference solution pass
    Verify {
        /// Tasks [default: all]
        names: Vec<String>,
        /// How often the untouched repository and the solution are tried; a check that does not come
        /// out the same each time is flaky
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = flashrig_config::whole_number(1, 100))]
        repeat: u32,
        /// How checks are contained
        #[arg(long, value_enum, default_value_t = SandboxArg::Auto)]
        sandbox: SandboxArg,
    },
}

#[derive(Default, Serialize)]
struct Row {
    name: String,
    /// Folder of the project that the task is read from; `null` for a built-in one.
    folder: Option<String>,
    title: String,
    source: String,
    checks: usize,
    cheats: usize,
    simulated: bool,
    /// Why the task cannot be used; `null` when it can.
    error: Option<String>,
}

/// Runs the command.
pub async fn tasks(command: TasksCommand, console: Console) -> Result<Exit, Failure> {
    let setting = Setting::new()?;
    let library = Library::new(Some(&setting.places.project));
    match command {
        TasksCommand::List => list(&library, console),
        TasksCommand::Verify {
            names,
            repeat,
            sandbox: choice,
        } => {
            let names = if names.is_empty() {
                library.names().or_usage()?
            } else {
                names
            };
            let sandbox = sandbox(choice).await?;
            let scratch = Scratch::new(&Scratch::candidates(&setting.places.cache)).or_rig()?;
            let mut proofs = Vec::new();
            for name in names {
                let task = library.load(&name).or_usage()?;
                console.note(&format!("proving {name} …"));
                let folder = scratch.path().join(&name);
                std::fs::create_dir_all(folder.join("cases")).or_rig()?;
                let base = Base::make(&task.source, &folder.join("base")).or_usage()?;
                let home = folder.join("home");
                let checks = Checks::new(&sandbox, &setting.shim, &setting.places, &home);
                let proof = prove(&task, &base, &folder.join("cases"), &checks, repeat)
                    .await
                    .or_rig()?;
                if !console.json() {
                    console.result(&message(&proof));
                }
                proofs.push(proof);
            }
            if console.json() {
                console.json_result(&proofs).or_rig()?;
            }
            Ok(verdict(&proofs))
        }
    }
}

fn verdict(proofs: &[Proof]) -> Exit {
    let rows = || proofs.iter().flat_map(|p| &p.rows);
    let unused = proofs.iter().any(|proof| !proof.unused_globs.is_empty());
    if unused || rows().any(|r| r.outcome == ProofOutcome::Unsound) {
        Exit::No
    } else if rows().any(|r| r.outcome != ProofOutcome::AsItShould) {
        Exit::Rig
    } else {
        Exit::Yes
    }
}

fn message(proof: &Proof) -> String {
    let mut out = format!(
        "{}: {}\n",
        proof.task,
        if proof.is_sound() {
            "its checks tell right from wrong"
        } else {
            "NOT SOUND"
        }
    );
    for glob in &proof.unused_globs {
        let mark = console::style("WRONG").red().bold();
        out.push_str(&format!(
            "  {mark:<7} protected: no file matches `{glob}`, so it protects nothing; correct the \
             path, or move it to `forbidden` if the agent must not create such a file\n",
        ));
    }
    for row in &proof.rows {
        let mark = match row.outcome {
            ProofOutcome::AsItShould => console::style("ok").green(),
            ProofOutcome::Unsound => console::style("WRONG").red().bold(),
            _ => console::style("unknown").yellow(),
        };
        out.push_str(&format!(
            "  {mark:<7} {}: {}\n",
            tried(&row.case),
            row.message
        ));
        if row.outcome != ProofOutcome::AsItShould {
            out.push_str(&outputs(row));
        }
    }
    out
}

/// The end of what each failed check printed, indented below its row.
fn outputs(row: &ProofRow) -> String {
    let checks = row.verification.iter().flat_map(|found| &found.checks);
    let failed = checks.filter(|check| check.outcome != CheckOutcome::Passed);
    let mut out = String::new();
    for check in failed {
        let plain = console::strip_ansi_codes(&check.output_tail);
        let lines: Vec<&str> = plain.lines().filter(|l| !l.trim().is_empty()).collect();
        if lines.is_empty() {
            out.push_str(&format!("          check {} printed nothing\n", check.name));
            continue;
        }
        out.push_str(&format!(
            "          the end of what {} printed:\n",
            check.name
        ));
        for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
            let line: String = line
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(SHOWN_CHARS)
                .collect();
            out.push_str(&format!("            {}\n", line.trim_end()));
        }
    }
    out
}

fn tried(case: &ProofCase) -> String {
    match case {
        ProofCase::Untouched => "untouched".to_owned(),
        ProofCase::Solution => "solution".to_owned(),
        ProofCase::Cheat(name) => format!("cheat {name}"),
    }
}

fn list(library: &Library, console: Console) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    for name in library.names().or_usage()? {
        rows.push(match library.load(&name) {
            Ok(task) => Row {
                source: match &task.source {
                    Source::Fixture(fixture) => format!("fixture {}", fixture.name),
                    Source::Repository { path, revision } => {
                        format!("{} at {revision}", path.display())
                    }
                },
                checks: task.checks.len(),
                cheats: task.cheats.len(),
                simulated: task.walkthrough.is_some(),
                folder: task.folder,
                title: task.title,
                name,
                error: None,
            },
            Err(error) => Row {
                folder: library.project_folder(&name).or_usage()?,
                name,
                error: Some(error.to_string()),
                ..Row::default()
            },
        });
    }
    if console.json() {
        console.json_result(&rows).or_rig()?;
        return Ok(Exit::Yes);
    }
    for row in rows {
        if let Some(error) = row.error {
            console.result(&format!("{:<14} cannot be used: {error}", row.name));
            continue;
        }
        let real_only = if row.simulated {
            ""
        } else {
            ", real servers only"
        };
        let folder = row.folder.map(|folder| format!(", from {folder}"));
        console.result(&format!(
            "{:<14} {}\n               {}, {}, {}{real_only}{}",
            row.name,
            row.title,
            row.source,
            plural(row.checks as u64, "check"),
            plural(row.cheats as u64, "cheat"),
            folder.unwrap_or_default()
        ));
    }
    Ok(Exit::Yes)
}
