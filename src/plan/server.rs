//! The server that was asked for. Plain data.

use std::path::PathBuf;

use flashrig_server::DoorSpec;

/// The server that was asked for, as typed.
#[derive(Clone, Debug, Default)]
pub struct ServerRequest {
    /// An address or the name of a profile; `None` is the embedded server.
    pub server: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Context length in tokens.
    pub context: Option<u64>,
    /// What opens its door.
    pub door: DoorSpec,
    /// Time factor of a simulated server.
    pub speed: Option<f64>,
    /// Changed values of its profile, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// Whether it is brought back to a known state before each arm or combination.
    pub reset: bool,
    /// The file that it writes its log to.
    pub server_log: Option<PathBuf>,
}
