//! Everything a connection needs to answer.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

use super::brain::Brain;
use super::counters::Counters;
use super::engine::Incoming as Inbox;
use super::faults::Faults;
use super::memory::Memory;
use super::profile::SimProfile;
use super::server_log::ServerLog;
use super::stream::Broken;

/// Any response body.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

/// Everything a connection needs to answer.
pub struct Service {
    /// What the server is.
    pub profile: SimProfile,
    /// All durations are divided by this.
    pub speed: f64,
    /// Decides what is answered.
    pub brain: Brain,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Part of response ids.
    pub seed: u64,
    /// Counts generation requests.
    pub requests: AtomicU64,
    /// To the engine.
    pub engine: std::sync::mpsc::Sender<Inbox>,
    /// The figures of `/metrics`.
    pub counters: Arc<Counters>,
    /// Memory in use.
    pub memory: Arc<Memory>,
    /// What a real server would log.
    pub server_log: ServerLog,
}
