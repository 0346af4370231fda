//! One session from its start to the proof that its process tree is gone.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::bodies::{Found, SessionBodies};
use super::ready::{Places, Ready};
use super::watchdog::Cut;
use crate::agent::{Ending, Meaning, Reader, Summary};
use crate::plan::SessionPlan;
use crate::run::shared::bus::{Live, Step};
use crate::run::shared::stop::Stop;
use flashrig_clock::Stamp;
use flashrig_gateway::GatewaySession;
use flashrig_gateway::egress::EgressGuard;
use flashrig_process::{Ended, ExitStatus, Line, Running, SpawnError, StopReason, TreeEnd};
use flashrig_record::threads;
use flashrig_record::{Attempt, EgressFact, Exit, KeptBodies, PrefixSummary, SessionDetail};

/// How often limits are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// For output that comes after the exit.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// From TERM to KILL when the user wants to stop: everything is over within five seconds.
const INTERRUPT_GRACE: Duration = Duration::from_secs(1);
/// The same when the server is lost: there is nothing left to be done.
const CUT_GRACE: Duration = Duration::from_secs(1);
/// Lines of standard error that are kept for error messages.
const STDERR_LINES: usize = 8;

/// A session whose process tree is gone.
pub struct Gone {
    pub plan: SessionPlan,
    pub places: Places,
    /// When it was let go; `None` when it did not start.
    pub started: Option<Stamp>,
    /// The end of its wall.
    pub ended: Option<Stamp>,
    pub ending: Ending,
    pub exit: Exit,
    pub process: Option<Ended>,
    pub attempts: Vec<Attempt>,
    /// What it asked the egress guard for.
    pub egress: Vec<EgressFact>,
    pub prefix: Option<PrefixSummary>,
    pub bodies: Option<KeptBodies>,
    pub transcript: Summary,
    pub stderr_tail: String,
}

/// A session that was let go.
pub struct Started {
    plan: SessionPlan,
    places: Places,
    gateway: GatewaySession,
    egress: EgressGuard,
    bodies: SessionBodies,
    running: Result<Running, SpawnError>,
    cut: Cut,
}

/// Lets a prepared session go.
pub async fn start(ready: Ready) -> Started {
    let Ready {
        plan,
        places,
        gateway,
        egress,
        bodies,
        prepared,
        cut,
    } = ready;
    Started {
        plan,
        places,
        gateway,
        egress,
        bodies,
        running: prepared.go().await,
        cut,
    }
}

/// Follows a session to its end.
pub async fn drive(started: Started, live: mpsc::UnboundedSender<Live>, mut stop: Stop) -> Gone {
    let Started {
        plan,
        places,
        gateway,
        egress,
        bodies,
        running,
        mut cut,
    } = started;
    let running = match running {
        Ok(running) => running,
        Err(error) => return never_started(plan, places, gateway, bodies, &error).await,
    };
    let mut session = Following::new(&plan, &running, live);
    let (ending, wall_end) = session
        .follow(&running, &gateway, &mut stop, &mut cut)
        .await;

    let (stdout, stderr, begun) = (
        running.stdout.clone(),
        running.stderr.clone(),
        running.started,
    );
    let process = running.finish(DRAIN_LIMIT).await;
    while let Some(line) = stdout.try_next() {
        session.output(&line);
    }
    while let Some(line) = stderr.try_next() {
        session.error_output(&line);
    }
    let traffic = explained(gateway, bodies).await;
    let egress = egress.close().await;
    let ending = match &process.tree {
        TreeEnd::Survivors(left) => Ending::RigFailed(SessionDetail::ProcessesLeft {
            commands: left.iter().map(|l| l.command.clone()).collect(),
        }),
        TreeEnd::Gone | TreeEnd::GoneAsFarAsSeen => ending,
    };
    let exit = match (&process.stopped, process.leader.map(|l| l.status)) {
        (Some(_), _) | (None, None) => Exit::Stopped,
        (None, Some(ExitStatus::Exited(code))) => Exit::Code(code),
        (None, Some(ExitStatus::Signalled(signal))) => Exit::Signal(signal),
    };
    let ended = wall_end
        .or(process.leader.map(|l| l.stamp))
        .unwrap_or_else(Stamp::now);
    let transcript = session.reader.summary().clone();
    let stderr_tail = Vec::from(session.stderr).join("\n");
    Gone {
        plan,
        places,
        started: Some(begun),
        ended: Some(ended),
        ending,
        exit,
        process: Some(process),
        attempts: traffic.attempts,
        prefix: traffic.prefix,
        bodies: traffic.bodies,
        egress,
        transcript,
        stderr_tail,
    }
}

async fn never_started(
    plan: SessionPlan,
    places: Places,
    gateway: GatewaySession,
    bodies: SessionBodies,
    error: &SpawnError,
) -> Gone {
    let traffic = explained(gateway, bodies).await;
    Gone {
        ending: Ending::RigFailed(SessionDetail::NotStarted {
            error: error.to_string(),
        }),
        plan,
        places,
        started: None,
        ended: None,
        exit: Exit::NotStarted,
        process: None,
        attempts: traffic.attempts,
        prefix: traffic.prefix,
        bodies: traffic.bodies,
        egress: Vec::new(),
        transcript: Summary::default(),
        stderr_tail: String::new(),
    }
}

/// What a session asked the server.
struct Traffic {
    attempts: Vec<Attempt>,
    prefix: Option<PrefixSummary>,
    bodies: Option<KeptBodies>,
}

/// Closes the gateway, and explains what it saw by the bodies that came with it.
async fn explained(gateway: GatewaySession, bodies: SessionBodies) -> Traffic {
    let mut attempts = gateway.close().await;
    let Some(Found { prompts, kept }) = bodies.finish().await else {
        return Traffic {
            attempts,
            prefix: None,
            bodies: None,
        };
    };
    let prefix = threads::explain(&mut attempts, &prompts);
    Traffic {
        attempts,
        prefix,
        bodies: Some(kept),
    }
}

/// What is known of a session while it runs.
struct Following<'a> {
    plan: &'a SessionPlan,
    live: mpsc::UnboundedSender<Live>,
    reader: Reader,
    stderr: VecDeque<String>,
    started: Stamp,
    last_output: Stamp,
    /// When the transcript told the end of the work.
    result: Option<Stamp>,
}

impl<'a> Following<'a> {
    fn new(plan: &'a SessionPlan, running: &Running, live: mpsc::UnboundedSender<Live>) -> Self {
        Self {
            plan,
            live,
            reader: Reader::new(plan.agent.profile.transcript.clone()),
            stderr: VecDeque::new(),
            started: running.started,
            last_output: running.started,
            result: None,
        }
    }

    /// Returns when the process has exited or must be ended, with the end of the wall when it is
    /// not the process's exit.
    async fn follow(
        &mut self,
        running: &Running,
        gateway: &GatewaySession,
        stop: &mut Stop,
        cut: &mut Cut,
    ) -> (Ending, Option<Stamp>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut stdout_open, mut stderr_open) = (true, true);
        loop {
            tokio::select! {
                () = stop.wait() => {
                    running.stop_within(StopReason::Interrupted, INTERRUPT_GRACE);
                    return (Ending::Interrupted, None);
                }
                trouble = cut.wait() => {
                    running.stop_within(StopReason::Interrupted, CUT_GRACE);
                    return (Ending::ServerLost(trouble), None);
                }
                exit = running.wait_leader() => {
                    let ending = exit.map_or_else(
                        |lost| {
                            let error = lost.to_string();
                            Ending::RigFailed(SessionDetail::RigFailed { error })
                        },
                        |_| Ending::Exited,
                    );
                    return (ending, None);
                }
                line = running.stdout.next(), if stdout_open => match line {
                    Some(line) => self.output(&line),
                    None => stdout_open = false,
                },
                line = running.stderr.next(), if stderr_open => match line {
                    Some(line) => self.error_output(&line),
                    None => stderr_open = false,
                },
                _ = look.tick() => {
                    if let Some((reason, ending, wall_end)) = self.look(gateway) {
                        running.stop(reason);
                        return (ending, wall_end);
                    }
                }
            }
        }
    }

    fn output(&mut self, line: &Line) {
        self.last_output = line.stamp;
        for reported in self.reader.line(&line.bytes) {
            let step = match reported.means {
                Meaning::Turn => Step::Turn,
                Meaning::ToolCall => Step::Tool(reported.detail),
                Meaning::End | Meaning::TurnLimit => {
                    self.result = Some(line.stamp);
                    continue;
                }
                Meaning::Error => continue,
            };
            let _ = self.live.send(Live::Session {
                id: self.plan.id.clone(),
                step,
            });
        }
    }

    fn error_output(&mut self, line: &Line) {
        self.last_output = line.stamp;
        let text = line.text();
        if text.trim().is_empty() {
            return;
        }
        if self.stderr.len() == STDERR_LINES {
            self.stderr.pop_front();
        }
        self.stderr
            .push_back(text.trim_end().chars().take(400).collect());
    }

    /// Looks at the limits.
    fn look(&mut self, gateway: &GatewaySession) -> Option<(StopReason, Ending, Option<Stamp>)> {
        let now = Stamp::now();
        let activity = gateway.activity();
        let profile = &self.plan.agent.profile;
        // An agent that goes on asking was not at its end.
        if activity.last_begun > self.result && self.result.take().is_some() {
            self.reader.went_on();
        }
        if let Some(at) = self.result
            && activity.in_flight == 0
        {
            // A request that was open at the result belongs to the work.
            let done = at.max(activity.last_change);
            return (now.since(done) > profile.exit_grace).then_some((
                StopReason::Lingering,
                Ending::DidNotExit,
                Some(done),
            ));
        }
        if now.since(self.started) > self.plan.time_limit {
            let ending = Ending::TimeLimit(self.plan.time_limit);
            return Some((StopReason::TimeLimit, ending, None));
        }
        let limit = profile.first_request_limit;
        if activity.first_generation.is_none() && now.since(self.started) > limit {
            let ending = Ending::NoRequestInTime(limit);
            return Some((StopReason::FirstDeadline, ending, None));
        }
        let last = self.last_output.max(activity.last_change);
        if activity.in_flight == 0 && now.since(last) > profile.idle_limit {
            let ending = Ending::Idle {
                limit: profile.idle_limit,
                requests: u64::from(activity.attempts),
            };
            return Some((StopReason::Idle, ending, None));
        }
        None
    }
}
