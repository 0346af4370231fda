//! What becomes of the server during a run: lost in the middle of something measured, started
//! again, reset. Its start is never inside of anything measured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::bus::Bus;
use super::error::NotBroughtBack;
use super::stop::Stop;
use crate::store::StoreError;
use flashrig_clock::{Origin, Seconds, Stamp};
use flashrig_config::error_chain;
use flashrig_record::{
    CellStop, CellStopReason, Kept, LifeFact, LifeKind, NotRestarted, ServerLife, ServerLoss,
    StopKind,
};
use flashrig_server::{Connected, Death, log_tail, still_there};

/// From the first sign of a death to its being known, at most.
const DEATH_LIMIT: Duration = Duration::from_secs(1);
/// Between two looks at a server that nobody reaches: one that closed its port for a moment is not
/// lost.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The server, lost without having been asked to go.
#[derive(Clone, Debug)]
pub struct Lost {
    at: Stamp,
    loss: ServerLoss,
    last_lines: Vec<String>,
}

impl Lost {
    /// Its process ended.
    pub fn died(server: &Connected, death: Death) -> Self {
        Self {
            at: death.at,
            loss: ServerLoss::Died {
                server: server.record.name.clone(),
                exit: death.exit,
                log: log_tail(&death.last_lines),
            },
            last_lines: death.last_lines,
        }
    }

    /// Nobody answers any more.
    pub fn gone(server: &Connected, why: &str) -> Self {
        let last_lines = server.last_lines();
        Self {
            at: Stamp::now(),
            loss: ServerLoss::Gone {
                error: why.to_owned(),
                started_by_flashrig: server.life.is_managed(),
                log: log_tail(&last_lines),
            },
            last_lines,
        }
    }

    /// When it was lost, as far as that is known.
    pub fn at(&self) -> Stamp {
        self.at
    }

    /// Who was lost and how.
    pub fn loss(&self) -> ServerLoss {
        self.loss.clone()
    }

    /// The end of a run by it.
    fn not_restarted(&self, not_restarted: NotRestarted) -> NotBroughtBack {
        NotBroughtBack {
            loss: self.loss(),
            not_restarted,
        }
    }

    /// The end of a combination by it.
    pub fn of_a_cell(&self) -> CellStop {
        CellStop {
            kind: StopKind::Failed,
            reason: CellStopReason::ServerLost { loss: self.loss() },
        }
    }

    fn record(&self, origin: &Origin) -> ServerLife {
        ServerLife {
            at_s: origin.at(self.at),
            what: LifeKind::Died,
            fact: LifeFact::Lost { loss: self.loss() },
            last_lines: self.last_lines.clone(),
            ready_after_s: None,
        }
    }
}

/// Told by whoever finds the server's door closed. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Missed(Arc<Notify>);

impl Missed {
    /// A request found nobody, or its answer broke off.
    pub fn report(&self) {
        self.0.notify_one();
    }
}

/// Waits until the server is lost: the death of a process of flashrig's own, or nobody at an
/// address at which `missed` tells of somebody in vain.
pub async fn lost(server: &Connected, missed: &Missed) -> Lost {
    let closed = async {
        loop {
            missed.0.notified().await;
            if let Some(lost) = nobody_there(server).await {
                return lost;
            }
        }
    };
    tokio::select! {
        biased;
        death = server.life.died() => Lost::died(server, death),
        lost = closed => lost,
    }
}

/// Whether the server is lost, after a sign of it.
pub async fn found_lost(server: &Connected) -> Option<Lost> {
    if server.life.is_managed()
        && let Ok(death) = timeout(DEATH_LIMIT, server.life.died()).await
    {
        return Some(Lost::died(server, death));
    }
    nobody_there(server).await
}

/// Whether the server is lost, where nothing tells of it.
pub async fn is_lost(server: &Connected) -> Option<Lost> {
    match server.life.death() {
        Some(death) => Some(Lost::died(server, death)),
        None => nobody_there(server).await,
    }
}

async fn nobody_there(server: &Connected) -> Option<Lost> {
    still_there(server).await.err()?;
    sleep(LOOK_AGAIN).await;
    let error = still_there(server).await.err()?;
    // A death tells more than a closed door.
    Some(match server.life.death() {
        Some(death) => Lost::died(server, death),
        None => Lost::gone(server, &error.to_string()),
    })
}

/// Records that the server was lost.
///
/// # Errors
/// The results folder cannot be written.
pub fn report_lost<R>(bus: &Bus<R>, lost: &Lost) -> Result<(), StoreError>
where
    R: Kept<What: From<ServerLife> + Clone>,
{
    bus.fact(lost.record(bus.origin()).into())
}

/// Starts the lost server again. `false` when the wish to stop came first.
///
/// # Errors
/// It must not be started again, does not get ready, or the results folder cannot be written; with
/// what to do.
pub async fn bring_back<R>(
    server: &Connected,
    bus: &Bus<R>,
    stop: &Stop,
    lost: &Lost,
) -> anyhow::Result<bool>
where
    R: Kept<What: From<ServerLife> + Clone>,
{
    let name = &server.record.name;
    if !server.life.is_managed() {
        return Err(lost.not_restarted(NotRestarted::NotManaged).into());
    }
    if !server.life.may_restart() {
        return Err(lost.not_restarted(NotRestarted::Forbidden).into());
    }
    bus.note(format!("starting {name} again"));
    let Some(started) = stop.unless(server.life.restart()).await else {
        return Ok(false);
    };
    let ready_after = started.map_err(|error| {
        let error = error_chain(&anyhow::Error::from(error));
        lost.not_restarted(NotRestarted::Failed { error })
    })?;
    let ready_after_s = Seconds::from(ready_after);
    let life = ServerLife {
        at_s: bus.origin().at(Stamp::now()),
        what: LifeKind::Restarted,
        fact: LifeFact::Restarted {
            server: name.clone(),
            ready_after_s,
        },
        last_lines: Vec::new(),
        ready_after_s: Some(ready_after_s),
    };
    bus.fact(life.into())?;
    Ok(true)
}

/// Brings the server back to a known state, as its profile says. Returns how long that took, or
/// `None` when the wish to stop came first.
///
/// # Errors
/// It did not work, or the results folder cannot be written.
pub async fn reset<R>(
    server: &Connected,
    bus: &Bus<R>,
    stop: &Stop,
) -> anyhow::Result<Option<Duration>>
where
    R: Kept<What: From<ServerLife> + Clone>,
{
    let name = &server.record.name;
    let Some(done) = stop.unless(server.life.reset()).await else {
        return Ok(None);
    };
    let took = done.with_context(|| format!("the server {name} could not be reset"))?;
    let life = ServerLife {
        at_s: bus.origin().at(Stamp::now()),
        what: LifeKind::Reset,
        fact: LifeFact::Reset {
            server: name.clone(),
            took_s: took.into(),
        },
        last_lines: Vec::new(),
        ready_after_s: None,
    };
    bus.fact(life.into())?;
    Ok(Some(took))
}
