//! What a request knows of the connection that it came by.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use flashrig_http::stamped::SocketWatch;

/// A client's connection. Clones are of the same one.
#[derive(Clone)]
pub(super) struct ClientConnection {
    pub(super) socket: SocketWatch,
    /// Its place among the unauthenticated ones, where these are limited; given back when a request
    /// is authenticated.
    place: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl ClientConnection {
    pub(super) fn new(socket: SocketWatch, place: Option<OwnedSemaphorePermit>) -> Self {
        let place = Arc::new(Mutex::new(place));
        Self { socket, place }
    }

    /// A request on it was authenticated.
    pub(super) fn authenticated(&self) {
        drop(self.place.lock().take());
    }

    /// Whether it is limited because no request on it was authenticated yet.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.place.lock().is_some()
    }
}
