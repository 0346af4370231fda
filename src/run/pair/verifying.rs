//! After the process tree is gone: the patch, the checks, what is kept.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;

use super::context::Context;
use super::drive::Gone;
use crate::agent::{HOME_FOLDERS, Places, base_environment};
use crate::run::shared::scratch::remove_all;
use crate::store::write_atomically;
use crate::verify::{CheckExit, CheckRun, CheckRunner, verify};
use flashrig_process::{CommandExit, Sandbox, Spec, run_command};
use flashrig_record::{Diff, Session, Status};
use flashrig_report::judge::session_failures;
use flashrig_workspace::Patch;

/// Runs checks below the process room's supervision, with a home of their own.
#[derive(Clone, Debug)]
pub struct Checks<'a> {
    sandbox: &'a Sandbox,
    shim: &'a Path,
    places: &'a Places,
    home: &'a Path,
}

impl<'a> Checks<'a> {
    /// Checks are contained by `sandbox`, supervised by the binary `shim`, find programs in
    /// `places`, and have `home` to themselves.
    pub fn new(sandbox: &'a Sandbox, shim: &'a Path, places: &'a Places, home: &'a Path) -> Self {
        Self {
            sandbox,
            shim,
            places,
            home,
        }
    }
}

impl CheckRunner for Checks<'_> {
    fn run<'a>(
        &'a self,
        argv: &'a [String],
        dir: &'a Path,
        limit: Duration,
    ) -> Pin<Box<dyn Future<Output = CheckRun> + Send + 'a>> {
        Box::pin(self.command(argv, dir, limit))
    }
}

impl Checks<'_> {
    async fn command(&self, argv: &[String], dir: &Path, limit: Duration) -> CheckRun {
        let not_started = |why: String| CheckRun {
            exit: CheckExit::NotStarted(why),
            output: Vec::new(),
            dropped_bytes: 0,
            duration: Duration::ZERO,
        };
        let Some((name, args)) = argv.split_first() else {
            return not_started("the check has no command".to_owned());
        };
        let program = if name.contains('/') {
            dir.join(name)
        } else {
            match self.places.on_path(name) {
                Some(program) => program,
                None => return not_started(format!("{name:?} is not on PATH")),
            }
        };
        for folder in HOME_FOLDERS {
            if let Err(e) = fs::create_dir_all(self.home.join(folder)) {
                return not_started(format!("cannot make a home for the checks: {e}"));
            }
        }
        let mut spec = Spec::new("check", program, dir, self.sandbox.clone(), self.shim);
        spec.args = args.iter().map(Into::into).collect();
        spec.env = base_environment(self.home, &self.places.operator)
            .into_iter()
            .collect();
        spec.writable = vec![dir.to_owned(), self.home.to_owned()];
        spec.visible = self.places.visible();
        let outcome = run_command(spec, limit).await;
        let exit = match outcome.exit {
            CommandExit::Exited(code) => CheckExit::Exited(code),
            CommandExit::Signalled(signal) => CheckExit::Signalled(signal),
            CommandExit::TimedOut => CheckExit::TimedOut,
            CommandExit::NotStarted(error) => CheckExit::NotStarted(error.to_string()),
            CommandExit::Lost => CheckExit::NotStarted("its supervisor was lost".to_owned()),
        };
        CheckRun {
            exit,
            output: outcome.output.into_bytes(),
            dropped_bytes: 0,
            duration: outcome.duration,
        }
    }
}

/// Whether the checks are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Yes.
    Yes,
    /// No: the run is being stopped.
    No,
}

/// Takes the patch and runs the checks, and completes the record with what they say.
pub async fn complete(
    context: &Context,
    gone: &Gone,
    mut session: Session,
    checks: Verify,
) -> anyhow::Result<Session> {
    let patch = take_patch(context, gone).await?;
    write_atomically(
        &gone.places.record.join("diff.patch"),
        patch.text.as_bytes(),
    )?;
    let mut exceeded = Vec::new();
    session.diff = Some(Diff {
        files: patch.files,
        insertions: patch.insertions,
        deletions: patch.deletions,
        protected_touched: Vec::new(),
    });
    if checks == Verify::Yes && !matches!(session.status, Status::Interrupted | Status::RigError) {
        let scratch = context
            .scratch
            .path()
            .join(format!("verify{}", gone.plan.index + 1));
        let home = scratch.join("home");
        let runner = Checks::new(&context.sandbox, &context.shim, &context.places, &home);
        if scratch.exists() {
            remove_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)
            .with_context(|| format!("cannot make {}", scratch.display()))?;
        let base = &context.bases[gone.plan.index];
        let found = verify(
            &gone.plan.task,
            base,
            &patch,
            &scratch.join("tree"),
            &runner,
        )
        .await?;
        if let Some(diff) = &mut session.diff {
            diff.protected_touched.clone_from(&found.protected_touched);
        }
        exceeded = found.diff_limit_exceeded;
        session.checks = found.checks;
        session.verified = true;
        keep_check_output(&gone.places.record, &session)?;
    }
    session.failures = session_failures(&session, exceeded);
    if context.keep && gone.places.work.exists() {
        let kept = gone.places.record.join("workspace");
        // What was measured stands, kept or not.
        if let Err(error) = keep_workspace(&gone.places.work, &kept) {
            context.bus.note(format!(
                "{}: its workspace could not be kept in {}: {error}",
                session.id,
                kept.display()
            ));
        }
    }
    Ok(session)
}

async fn take_patch(context: &Context, gone: &Gone) -> anyhow::Result<Patch> {
    let base = context.bases[gone.plan.index].clone();
    let work = gone.places.work.clone();
    tokio::task::spawn_blocking(move || base.patch(&work))
        .await
        .context("taking the patch was cut off")?
        .with_context(|| format!("session {}: cannot take its patch", gone.plan.id))
}

fn keep_check_output(record: &Path, session: &Session) -> anyhow::Result<()> {
    let folder = record.join("checks");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for check in &session.checks {
        let name: String = check
            .name
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '-' })
            .collect();
        write_atomically(
            &folder.join(format!("{name}.txt")),
            check.output_tail.as_bytes(),
        )?;
    }
    Ok(())
}

/// Moves the workspace into the results, or copies it when they lie on another file system.
fn keep_workspace(work: &Path, kept: &Path) -> std::io::Result<()> {
    if fs::rename(work, kept).is_ok() {
        return Ok(());
    }
    copy_folder(work, kept)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, dest) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&source, &dest)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &dest)?;
        } else if kind.is_file() {
            fs::copy(&source, &dest)?;
        }
    }
    Ok(())
}
