//! The sessions of a combination while they run.
//!
//! Turns are kept as they end, outside of the sessions' tasks, so that nothing is lost when the
//! tasks are broken off.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{FitContext, stop_kind};
use flashrig_clock::Seconds;
use flashrig_load::{Prepared, SessionAttempt};
use flashrig_record::{CellStop, CellStopReason, Lane, Outcome, Role, StopKind, Turn};

/// The sessions of a combination.
#[derive(Clone, Debug)]
pub struct Lanes {
    all: Arc<Vec<Mutex<Lane>>>,
    /// First turns that were not sent yet.
    unsent: Arc<AtomicU32>,
}

/// Why a phase ended early.
pub type Broken = CellStop;

impl Lanes {
    /// So many, of which nothing is known yet: `s1`, `s2`, …
    pub fn new(sessions: u32) -> Self {
        let lane = |n| {
            Mutex::new(Lane {
                id: name(n),
                turns: Vec::new(),
            })
        };
        Self {
            all: Arc::new((1..=sessions).map(lane).collect()),
            unsent: Arc::new(AtomicU32::new(sessions)),
        }
    }

    /// First turns that were not sent yet.
    pub fn unsent(&self) -> u32 {
        self.unsent.load(Ordering::Relaxed)
    }

    fn lane(&self, index: usize) -> MutexGuard<'_, Lane> {
        self.all[index].lock()
    }

    /// All that is known.
    pub fn take(&self) -> Vec<Lane> {
        (0..self.all.len())
            .map(|index| self.lane(index).clone())
            .collect()
    }

    /// Counts a first turn as sent once it is on its way, and not before: the client knows of it by
    /// then, so that nobody takes the moment between for the end of all reading.
    async fn sending<T>(&self, turn: impl Future<Output = T>) -> T {
        let mut turn = pin!(turn);
        let mut is_sent = false;
        std::future::poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if !is_sent {
                is_sent = true;
                self.unsent.fetch_sub(1, Ordering::Relaxed);
            }
            polled
        })
        .await
    }

    /// Keeps a turn; says why the combination ends when it was not whole.
    fn keep(&self, index: usize, turn: Turn) -> Option<Broken> {
        let mut lane = self.lane(index);
        let broken = broken(&lane.id, &turn);
        lane.turns.push(turn);
        broken
    }

    /// Sends the first turns of all sessions at once, or each `stagger` behind the one before.
    ///
    /// # Errors
    /// The first session that failed; the others are broken off by then.
    pub async fn cold(
        &self,
        context: &FitContext,
        sessions: Vec<Prepared>,
    ) -> Result<Vec<Prepared>, Broken> {
        let start = Arc::new(Barrier::new(sessions.len()));
        let stagger = context.on_the_wall(context.spec.stagger_s);
        let mut tasks = JoinSet::new();
        for (index, mut session) in sessions.into_iter().enumerate() {
            let (lanes, client, start) = (self.clone(), context.client.clone(), start.clone());
            let later = stagger * u32::try_from(index).unwrap_or(u32::MAX);
            tasks.spawn(async move {
                start.wait().await;
                if !later.is_zero() {
                    tokio::time::sleep(later).await;
                }
                let turn = lanes.sending(session.cold(&client)).await;
                match lanes.keep(index, turn) {
                    Some(broken) => Err(broken),
                    None => Ok((index, session)),
                }
            });
        }
        let mut done = joined(tasks, context.broken_off()).await?;
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, session)| session).collect())
    }

    /// Lets every session do its warm turns, all beginning at once.
    ///
    /// # Errors
    /// The first session that failed; the others are broken off by then.
    pub async fn warm(&self, context: &FitContext, sessions: Vec<Prepared>) -> Result<(), Broken> {
        let start = Arc::new(Barrier::new(sessions.len()));
        let think = context.on_the_wall(context.spec.think_s);
        let checks = context.spec.checks;
        let mut tasks = JoinSet::new();
        for (index, mut session) in sessions.into_iter().enumerate() {
            let (lanes, client, start) = (self.clone(), context.client.clone(), start.clone());
            tasks.spawn(async move {
                start.wait().await;
                for number in 1..=checks {
                    if number > 1 && !think.is_zero() {
                        tokio::time::sleep(think).await;
                    }
                    let turn = session.warm(&client, number).await;
                    if let Some(broken) = lanes.keep(index, turn) {
                        return Err(broken);
                    }
                }
                Ok(())
            });
        }
        joined(tasks, context.broken_off()).await.map(drop)
    }

    /// Adds a last turn to every session that was broken off in the middle of one: the client's
    /// rows tell of it.
    pub fn broken_off(&self, rows: &[SessionAttempt], speed: f64) {
        for index in 0..self.all.len() {
            let mut lane = self.lane(index);
            let cut = rows.iter().find(|row| {
                row.session == lane.id
                    && row.attempt.role == Role::Main
                    && row.attempt.outcome == Outcome::ClientAborted
            });
            if let Some(row) = cut {
                let number = u32::try_from(lane.turns.len()).unwrap_or(u32::MAX);
                lane.turns.push(cut_turn(number, row, speed));
            }
        }
    }
}

/// The name of a session.
pub fn name(number: u32) -> String {
    format!("s{number}")
}

/// Waits for all. The first error, or what `breaks` them off, ends the others: their connections
/// close at once, and all are gone when this returns.
async fn joined<T: Send + 'static>(
    mut tasks: JoinSet<Result<T, Broken>>,
    breaks: impl Future<Output = Broken>,
) -> Result<Vec<T>, Broken> {
    let mut all = Vec::new();
    let mut first = None;
    let mut breaks = pin!(breaks);
    loop {
        let done = tokio::select! {
            biased;
            broken = &mut breaks, if first.is_none() => Some(Ok(Err(broken))),
            done = tasks.join_next() => done,
        };
        match done {
            None => break,
            Some(Ok(Ok(one))) => all.push(one),
            // Those that were broken off have nothing to add.
            Some(_) if first.is_some() => {}
            Some(Ok(Err(broken))) => {
                first = Some(broken);
                tasks.abort_all();
            }
            Some(Err(failed)) => {
                first = Some(CellStop {
                    kind: StopKind::Failed,
                    reason: CellStopReason::RigFailed {
                        error: failed.to_string(),
                    },
                });
                tasks.abort_all();
            }
        }
    }
    first.map_or(Ok(all), Err)
}

fn broken(lane: &str, turn: &Turn) -> Option<Broken> {
    let kind = stop_kind(turn.outcome)?;
    Some(CellStop {
        kind,
        reason: CellStopReason::TurnFailed {
            session: lane.to_owned(),
            turn: turn.index,
            outcome: turn.outcome,
            message: turn.error.as_ref().map(|e| e.message.clone()),
            life: None,
        },
    })
}

/// A turn that flashrig broke off.
fn cut_turn(index: u32, row: &SessionAttempt, speed: f64) -> Turn {
    let clocks = &row.attempt.clocks;
    let sent = clocks.sent_s.unwrap_or(clocks.head_s);
    Turn {
        index,
        sent_at_s: sent,
        wall_s: None,
        ttft_s: clocks
            .first_token_s
            .map(|first| Seconds((first.0 - sent.0).max(0.0) * speed)),
        decode_s: None,
        input_tokens: row.attempt.input_tokens,
        cached_tokens: row.attempt.cached_tokens,
        output_tokens: None,
        answered_model: row.attempt.answered_model.clone(),
        asked: None,
        right: None,
        outcome: Outcome::ClientAborted,
        refusal: None,
        error: None,
    }
}
