//! What is asked of whom.

use std::time::Duration;

use flashrig_http::Upstream;
use flashrig_record::Dialect;

/// Where requests go, and how long they may take.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The server.
    pub upstream: Upstream,
    /// The model asked for.
    pub model: String,
    /// The protocol spoken.
    pub dialect: LoadDialect,
    /// How long answers may take.
    pub limits: LoadLimits,
    /// Seconds of the server's own time in a wall second: 1 for any real server. Turns are told in
    /// the server's time; attempts stay on the wall clock.
    pub speed: f64,
}

impl Aim {
    /// The limits as wall time.
    pub fn limits_on_the_wall(&self) -> LoadLimits {
        self.limits.on_the_wall(self.speed)
    }
}

/// A protocol that synthetic sessions speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDialect {
    /// `POST /v1/chat/completions`
    OpenaiChat,
    /// `POST /v1/messages`
    AnthropicMessages,
}

impl LoadDialect {
    /// As records name it.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::OpenaiChat => Dialect::OpenaiChat,
            Self::AnthropicMessages => Dialect::AnthropicMessages,
        }
    }

    /// The route.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenaiChat => "/v1/chat/completions",
            Self::AnthropicMessages => "/v1/messages",
        }
    }
}

/// How long answers may take, in the server's own time. On a fast simulated server each is still
/// at least one wall second, so that a busy machine is not taken for a stalled server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// From sending to the first token.
    pub first_token: Duration,
    /// From one token to the next. Another session's prefill may hold up a decode for as long as
    /// it would hold up a first token.
    pub silence: Duration,
}

impl LoadLimits {
    /// The same limit for the first token and for the time from each to the next.
    pub fn each(limit: Duration) -> Self {
        Self {
            first_token: limit,
            silence: limit,
        }
    }

    /// The limits as wall time at `speed`.
    fn on_the_wall(self, speed: f64) -> Self {
        let wall = |limit: Duration| {
            let seconds = limit.as_secs_f64() / speed;
            Duration::try_from_secs_f64(seconds)
                .unwrap_or(Duration::MAX)
                .max(Duration::from_secs(1))
        };
        Self {
            first_token: wall(self.first_token),
            silence: wall(self.silence),
        }
    }
}
