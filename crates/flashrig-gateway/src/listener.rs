//! The accept loop of a listener.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::connection::{Draining, begins, connection, turn_away};
use super::shared::Shared;

/// The listening task, which must not outlive its session.
pub(super) struct Listening(pub(super) JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves a listener by a task of its own.
///
/// The task is spawned by a function that is not async, so that it is compiled here, once and with
/// this crate's optimisation, and not again in every program that opens a gateway.
pub(super) fn listen(
    listener: TcpListener,
    shared: Arc<Shared>,
    label: String,
    stopped: oneshot::Receiver<()>,
    draining: Draining,
) -> Listening {
    Listening(tokio::spawn(accept(
        listener, shared, label, stopped, draining,
    )))
}

/// Accepts until told to drain or to stop; when this ends, no connection is left.
async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    label: String,
    mut stopped: oneshot::Receiver<()>,
    mut draining: Draining,
) {
    let mut connections = JoinSet::new();
    let unauthenticated = shared.limits.unauthenticated;
    let places = unauthenticated.map(|limit| Arc::new(Semaphore::new(limit.connections)));
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = begins(&mut draining) => {
                drop(listener);
                tokio::select! {
                    _ = &mut stopped => connections.shutdown().await,
                    () = async { while connections.join_next().await.is_some() {} } => {}
                }
                return;
            }
            Some(ended) = connections.join_next() => if let Err(error) = ended {
                tracing::error!(session = label, %error, "a connection's task failed");
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let place = places.clone().map(Semaphore::try_acquire_owned).transpose();
                    let Ok(place) = place else {
                        turn_away(&stream, &shared);
                        continue;
                    };
                    let shared = Arc::clone(&shared);
                    connections.spawn(connection(stream, shared, draining.clone(), place));
                }
                Err(error) => {
                    tracing::warn!(session = label, %error, "cannot accept a connection");
                    // Most often no descriptor is free; trying again at once would only spin.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}
