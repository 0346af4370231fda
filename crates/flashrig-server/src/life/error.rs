//! Why a server could not be started, or brought back.

use flashrig_config::format_duration;
use std::time::Duration;

use super::flags::FlagError;
use super::launch_error::LaunchError;
use flashrig_http::UpstreamError;
use flashrig_process::SpawnError;

/// A server that could not be brought back.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// flashrig did not start it.
    #[error("flashrig did not start this server, and cannot {0} it")]
    NotOurs(&'static str),
    /// Its profile does not say how.
    #[error("its profile has no [reset], so it cannot be brought back to a known state")]
    NoReset,
    /// It did not come back.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A request that resets failed.
    #[error("the reset by {method} {path} failed: {message}")]
    Request {
        /// Method.
        method: String,
        /// Path.
        path: String,
        /// What was answered, or why nothing was.
        message: String,
    },
    /// It was ended meanwhile.
    #[error("the server was ended meanwhile")]
    Ended,
}

/// A server that did not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It cannot be started here.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its flags are not right.
    #[error(transparent)]
    Flags(Box<FlagError>),
    /// What opens its door cannot be sent.
    #[error(transparent)]
    Door(#[from] UpstreamError),
    /// The system has no port.
    #[error("the system gives no free port: {0}")]
    NoPort(#[from] std::io::Error),
    /// Somebody else listens there.
    #[error(
        "server {profile}: port {port} is taken; end what listens on 127.0.0.1:{port}, or give \
         another with --set port=N"
    )]
    PortTaken {
        /// Profile.
        profile: String,
        /// Port.
        port: u16,
    },
    /// The program could not be run.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended before it was ready.
    #[error("server {profile}: it {message}, {after:.1?} after its start and before it was ready{}", said(.last_lines))]
    Died {
        /// Profile.
        profile: String,
        /// How it ended.
        message: String,
        /// How long it lived.
        after: Duration,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// It did not become ready.
    #[error(
        "server {profile}: it was not ready within {} and was ended: GET {url} {last} (limit \
         and path stand in [ready] of its profile){}", format_duration(*.limit), said(.last_lines)
    )]
    NotReady {
        /// Profile.
        profile: String,
        /// What was asked for.
        url: String,
        /// How long was waited.
        limit: Duration,
        /// What was answered last.
        last: String,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// It was to end before it was ready.
    #[error("server {profile}: it was ended while it started")]
    Cancelled {
        /// Profile.
        profile: String,
    },
    /// A value did not take effect.
    #[error("server {profile}: {message}")]
    NoEffect {
        /// Profile.
        profile: String,
        /// Which, and who says so.
        message: String,
    },
}

impl StartError {
    /// Whether something else has to be typed.
    pub fn is_mistyped(&self) -> bool {
        match self {
            Self::Launch(error) => error.is_mistyped(),
            Self::Door(_) => true,
            Self::Flags(error) => match &**error {
                FlagError::Launch(error) => error.is_mistyped(),
                FlagError::Unknown { .. } => true,
            },
            _ => false,
        }
    }
}

impl From<FlagError> for StartError {
    fn from(error: FlagError) -> Self {
        Self::Flags(Box::new(error))
    }
}

fn said(last_lines: &[String]) -> String {
    if last_lines.is_empty() {
        return "; its log is empty".to_owned();
    }
    format!("; the end of its log:\n  {}", last_lines.join("\n  "))
}
