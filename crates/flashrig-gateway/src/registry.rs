//! What a standing listener asks about its clients, and tells of them.

use tokio::sync::watch;

use super::events::{Activity, Observer};

/// Follows the clients of a standing listener.
pub trait ClientRegistry: Send + Sync + 'static {
    /// A client is seen for the first time (those with a token when the listener opens).
    /// `activity` follows what it is doing; the observer hears of its requests.
    fn client(&self, name: &str, activity: watch::Receiver<Activity>) -> Box<dyn Observer>;

    /// What to answer on a path that is the listener's own; `None` forwards the request.
    fn page(&self, path: &str) -> Option<Page>;
}

/// One of the listener's own pages, never forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its text.
    pub text: String,
    /// Whether only those with a client's token may read it, where tokens are set.
    pub private: bool,
}
