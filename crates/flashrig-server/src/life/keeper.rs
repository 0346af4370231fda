//! The task that owns a server's process: notices its end, starts it again, ends it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::begin::{Begun, DRAIN, begin};
use super::error::StartError;
use super::launch::{HOST, Launch};
use super::state::{Death, Order, Plan, Shared, State};
use super::{Life, ended, port};
use crate::log::LogIndex;
use flashrig_clock::Stamp;
use flashrig_http::{Door, KeyStyle, Upstream};
use flashrig_process::{OomKills, Running, StopReason, TreeEnd};
use flashrig_record::ServerExit;

/// Between two looks at what its processes use; the process room takes samples as often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Lines of the log that are kept of a death.
const LAST_LINES: usize = 20;
/// For the rest of its log; a child that outlives it may hold that open.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How often another free port is tried when somebody was faster.
const TRIES: u32 = 3;

/// Starts a server and waits until it is ready: its life, its address, and how long that took.
///
/// # Errors
/// See [`StartError`]. Nothing is left running.
pub(crate) async fn start(
    launch: Launch,
    log_index: LogIndex,
    door: &Door,
) -> Result<(Life, u16, Duration), StartError> {
    let fixed = launch.recipe.port;
    let mut tries = 0;
    loop {
        tries += 1;
        let port = match fixed {
            Some(port) => port,
            None => port::free()?,
        };
        let plan = Plan {
            launch: launch.clone(),
            port,
            log_index: log_index.clone(),
            server: at(port, door)?,
        };
        let shared = Arc::new(Shared::new(plan));
        match begin(&shared, std::future::pending()).await {
            Ok(begun) => {
                let after = begun.ready_after;
                let (orders, to_do) = mpsc::unbounded_channel();
                tokio::spawn(keep(shared.clone(), begun, to_do));
                return Ok((Life::kept(orders, shared), port, after));
            }
            // Between finding the port and listening there somebody else took it.
            Err(StartError::Died { .. } | StartError::PortTaken { .. })
                if fixed.is_none() && tries < TRIES && !port::is_free(port) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The server that is started at a port.
fn at(port: u16, door: &Door) -> Result<Upstream, StartError> {
    let url = format!("http://{HOST}:{port}");
    Ok(Upstream::new(&url, door.clone(), KeyStyle::ByDialect)?)
}

/// Keeps a server until nobody is left who knows of it.
pub(super) async fn keep(
    shared: Arc<Shared>,
    begun: Begun,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let mut now = Some(begun);
    loop {
        let order = match now.take() {
            None => orders.recv().await,
            Some(begun) => match watch_over(&shared, &begun.running, &mut orders).await {
                Received::Died => {
                    after_death(&shared, begun).await;
                    continue;
                }
                Received::Order(order) => {
                    // Its end, being asked for, is no death.
                    shared.state.send_replace(State::Ended);
                    begun.running.stop(StopReason::Interrupted);
                    finish(&shared, begun).await;
                    order
                }
            },
        };
        now = match order {
            Some(order) => obey(&shared, order, &mut orders).await,
            None => return,
        };
    }
}

/// Does what was asked of a server that does not run; it runs afterwards, or not.
async fn obey(
    shared: &Shared,
    order: Order,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<Begun> {
    let mut order = order;
    loop {
        let reply = match order {
            Order::Restart(reply) => reply,
            Order::Stop(reply) => {
                shared.state.send_replace(State::Ended);
                let _ = reply.send(());
                return None;
            }
        };
        let mut next = None;
        let again = begin(shared, async { next = orders.recv().await }).await;
        match again {
            Ok(begun) => {
                let _ = reply.send(Ok(begun.ready_after));
                return Some(begun);
            }
            // Whoever gave the next order, or left, wants this one no more.
            Err(StartError::Cancelled { .. }) => order = next?,
            Err(error) => {
                shared.state.send_replace(State::Dead(Death {
                    at: Stamp::now(),
                    exit: ServerExit {
                        restart_error: Some(error.to_string()),
                        ..ServerExit::default()
                    },
                    last_lines: shared.plan.log_index.last_lines(LAST_LINES),
                }));
                let _ = reply.send(Err(error));
                return None;
            }
        }
    }
}

enum Received {
    Died,
    /// `None` when nobody is left to give one.
    Order(Option<Order>),
}

async fn watch_over(
    shared: &Shared,
    running: &Running,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Received {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = running.wait_leader() => return Received::Died,
            order = orders.recv() => return Received::Order(order),
            _ = looks.tick() => shared.note(running.usage_now()),
        }
    }
}

/// Returns when all of it is gone.
async fn finish(shared: &Shared, begun: Begun) {
    let ended = begun.running.finish(DRAIN).await;
    if !begun.pump.is_finished() {
        let _ = begun.pump.await;
    }
    if let TreeEnd::Survivors(left) = &ended.tree {
        tracing::warn!(?left, "processes of the server could not be ended");
    }
    let mut figures = shared.figures();
    figures.peak_rss_bytes = figures.peak_rss_bytes.max(ended.usage.peak_rss_bytes);
    figures.reading = None;
}

/// It died: its last words are read, and what is left of its tree is ended.
async fn after_death(shared: &Shared, mut begun: Begun) {
    let exit = begun.running.leader_exit();
    let _ = tokio::time::timeout(LAST_WORDS, &mut begun.pump).await;
    let last_lines = shared.plan.log_index.last_lines(LAST_LINES);
    let oom = OomKills::now().since(begun.oom);
    shared.state.send_replace(State::Dead(Death {
        at: exit.map_or_else(Stamp::now, |exit| exit.stamp),
        exit: ended::exit(exit.map(|exit| exit.status), oom, &last_lines),
        last_lines,
    }));
    finish(shared, begun).await;
}
