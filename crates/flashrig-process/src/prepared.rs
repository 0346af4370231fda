//! A program that is ready to run: helper up, program checked, waiting for the barrier.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::fs::File;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::control::{Control, KILL_BOUND, View};
use super::drain::{self, Drain};
use super::helper_command;
use super::ipc::{Failure, Job, Order, Step};
use super::running::Running;
use super::sandbox::Sandbox;
use super::spawner::on_spawning_thread;
use super::spec::{HelperFault, Output, SpawnError, Spec};

/// For the helper to come up, and for the program to be exec'd, on a busy machine.
const HELPER_LIMIT: Duration = Duration::from_secs(20);
const SAMPLE_EVERY: Duration = Duration::from_millis(250);
/// For reading the last output of a helper that ended early.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// A program that is ready to run. Dropping it ends the helper; the program never ran.
#[derive(Debug)]
pub struct Prepared {
    spec: Spec,
    control: Control,
    stdout: Drain,
    stderr: Drain,
}

/// The helper as it was started, with the ends of its channel and pipes.
struct StartedHelper {
    child: Child,
    channel: StdUnixStream,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
}

impl Prepared {
    /// Starts the helper for `spec` and has it check the program.
    ///
    /// # Errors
    /// When the program or its working directory is missing, an output file cannot be made, or
    /// the helper or its sandbox does not come up. Nothing is left running.
    pub async fn new(spec: Spec) -> Result<Self, SpawnError> {
        if !spec.program.is_absolute() {
            return Err(SpawnError::RelativeProgram {
                label: spec.label.clone(),
                program: spec.program.display().to_string(),
            });
        }
        let (merged, out_path, err_path) = match &spec.output {
            Output::Separate { stdout, stderr } => (false, stdout.as_ref(), stderr.as_ref()),
            Output::Merged { file } => (true, file.as_ref(), None),
        };
        let out_file = create(&spec, out_path).await?;
        let err_file = create(&spec, err_path).await?;

        let (helper, args) = helper_command::helper_command(&spec);
        let helper_error = |source| SpawnError::Helper {
            label: spec.label.clone(),
            helper: helper.display().to_string(),
            source,
        };
        let command = (helper.clone(), args);
        let started = on_spawning_thread(move || start_helper(command.0, command.1, merged))
            .await
            .map_err(helper_error)?;
        let stdout = Drain::start(started.stdout, out_file, spec.limits).map_err(helper_error)?;
        let stderr = match started.stderr {
            Some(pipe) => Drain::start(pipe, err_file, spec.limits).map_err(helper_error)?,
            None => Drain::none(),
        };
        started
            .channel
            .set_nonblocking(true)
            .map_err(helper_error)?;
        let socket = UnixStream::from_std(started.channel).map_err(helper_error)?;
        let mut prepared = Self {
            control: Control::new(socket, started.child),
            stdout,
            stderr,
            spec,
        };
        prepared
            .control
            .order(Order::Prepare(Box::new(prepared.job())));
        prepared.expect(|view| view.ready).await?;
        Ok(prepared)
    }

    /// Runs the program now.
    ///
    /// # Errors
    /// When it cannot be executed after all (a missing interpreter, arguments too long), or the
    /// helper is lost. Nothing is left running.
    pub async fn go(mut self) -> Result<Running, SpawnError> {
        self.control.order(Order::Go);
        let view = self.expect(|view| view.started.is_some()).await?;
        let Some((pid, started)) = view.started else {
            return Err(self.lost(HelperFault::NotStarted, String::new()));
        };
        Ok(Running::new(
            &self.spec,
            self.control,
            pid,
            started,
            self.stdout,
            self.stderr,
        ))
    }

    /// [`Spec::label`].
    pub fn label(&self) -> &str {
        &self.spec.label
    }

    fn job(&self) -> Job {
        Job {
            program: self.spec.program.clone().into(),
            args: self.spec.args.clone(),
            env: self.spec.env.clone(),
            dir: self.spec.dir.clone().into(),
            grace: self.spec.grace,
            kill_bound: KILL_BOUND,
            sample_every: SAMPLE_EVERY,
        }
    }

    async fn expect(&mut self, enough: impl Fn(&View) -> bool) -> Result<View, SpawnError> {
        let deadline = Instant::now() + HELPER_LIMIT;
        let reported = self
            .control
            .until_at(deadline, |view| view.failed.is_some() || enough(view))
            .await;
        match reported {
            Some(view) if enough(&view) => Ok(view),
            Some(View {
                failed: Some(failure),
                ..
            }) => {
                // Only a helper that has ended has nothing left running.
                self.control.until_at(deadline, |_| false).await;
                Err(self.refused(failure))
            }
            Some(_) => {
                let message = self.last_output().await;
                Err(self.lost(HelperFault::EndedEarly, message))
            }
            None => {
                self.control
                    .force(
                        matches!(self.spec.sandbox, Sandbox::Bubblewrap { .. }),
                        KILL_BOUND,
                    )
                    .await;
                let message = self.last_output().await;
                Err(self.lost(HelperFault::NoAnswer, message))
            }
        }
    }

    fn refused(&self, failure: Failure) -> SpawnError {
        let label = self.spec.label.clone();
        let program = self.spec.program.display().to_string();
        match failure.step {
            Step::Program => SpawnError::Program {
                label,
                program,
                message: failure.message,
            },
            Step::Directory => SpawnError::Directory {
                label,
                program,
                dir: self.spec.dir.display().to_string(),
                message: failure.message,
            },
        }
    }

    fn lost(&self, what: HelperFault, message: String) -> SpawnError {
        SpawnError::HelperLost {
            label: self.spec.label.clone(),
            what,
            message,
        }
    }

    /// What the helper, or bubblewrap in its place, printed before it ended.
    async fn last_output(&mut self) -> String {
        let deadline = Instant::now() + LAST_OUTPUT_LIMIT;
        let mut message = Vec::new();
        for drain in [&mut self.stderr, &mut self.stdout] {
            drain.finish(deadline).await;
            while let Some(line) = drain.lines.try_next() {
                message.push(line.text().into_owned());
            }
        }
        message.join("; ")
    }
}

async fn create(spec: &Spec, path: Option<&PathBuf>) -> Result<Option<File>, SpawnError> {
    let Some(path) = path else { return Ok(None) };
    let fail = |source| SpawnError::OutputFile {
        label: spec.label.clone(),
        file: path.display().to_string(),
        source,
    };
    drain::create(path).await.map(Some).map_err(fail)
}

/// Starts the helper, with the channel as its standard input.
fn start_helper(
    program: PathBuf,
    args: Vec<std::ffi::OsString>,
    merged: bool,
) -> io::Result<StartedHelper> {
    let (channel, helpers_end) = StdUnixStream::pair()?;
    let (stdout, out_writer) = io::pipe()?;
    let (stderr, err_writer) = if merged {
        (None, out_writer.try_clone()?)
    } else {
        let (reader, writer) = io::pipe()?;
        (Some(OwnedFd::from(reader)), writer)
    };
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(helpers_end)))
        .stdout(Stdio::from(out_writer))
        .stderr(Stdio::from(err_writer))
        // Ctrl-C at the terminal is for flashrig, which then ends its helpers in order.
        .process_group(0)
        .spawn()?;
    Ok(StartedHelper {
        child,
        channel,
        stdout: stdout.into(),
        stderr,
    })
}
