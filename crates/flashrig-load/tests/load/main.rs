//! The synthetic client: prompts of the size asked for, sessions that behave like long ones, facts
//! that are asked for, and clear words about servers that cannot be measured.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot get what it needs has failed"
)]

mod counting;
mod limits;
mod servers;
mod sessions;
mod sizes;
use flashrig_testkit::upstream;

use std::time::Duration;

use flashrig_clock::Origin;
use flashrig_http::{KeyStyle, Upstream};
use flashrig_load::{Aim, Client, LoadDialect, LoadLimits, SessionPlan};

/// A client with limits that only something wrong reaches.
fn client(url: &str, dialect: LoadDialect) -> Client {
    with_limits(url, dialect, Duration::from_secs(60))
}

fn with_limits(url: &str, dialect: LoadDialect, limit: Duration) -> Client {
    let aim = Aim {
        upstream: upstream_of(url),
        model: "m".to_owned(),
        dialect,
        limits: LoadLimits {
            first_token: limit,
            silence: limit,
        },
        speed: 1.0,
    };
    Client::new(aim, Origin::now())
}

fn upstream_of(url: &str) -> Upstream {
    Upstream::new(url, None, KeyStyle::ByDialect).unwrap()
}

fn plan(id: &str, context_tokens: u64, checks: u32) -> SessionPlan {
    SessionPlan {
        id: id.to_owned(),
        context_tokens,
        checks,
        answer_tokens: 16,
        seed: 3,
        salt: flashrig_load::salt(&[1, context_tokens, id.len() as u64, id.as_bytes()[0].into()]),
        shared_prefix: false,
    }
}
