//! What was asked of `fit`, validated. Pure.

use std::time::Duration;

use super::Refused;
use super::grid::sizes;
use super::rounds::{Rounds, RoundsAsked};
use flashrig_config::{format_tokens, plural};
use flashrig_record::{LoadSpec, RecallRule, Server, SideSpec, Thresholds};

/// Tokens of a side request's prompt.
const SIDE_PROMPT_TOKENS: u64 = 200;
/// Side requests of one combination while first turns are read, at most.
const SIDES_DURING_COLD: u32 = 16;

/// What was asked for; `None` was left out. Plain data.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Context lengths in tokens.
    pub contexts: Option<Vec<u64>>,
    /// Numbers of sessions.
    pub sessions: Option<Vec<u32>>,
    /// How often each combination is measured.
    pub rounds: Option<RoundsAsked>,
    /// No round begins after so long.
    pub max_time: Option<Duration>,
    /// Whether the largest number that fits is searched for.
    pub search: bool,
    /// Warm turns of each session.
    pub checks: Option<u32>,
    /// Tokens of each answer.
    pub answer_tokens: Option<u32>,
    /// Pause between turns.
    pub think: Option<Duration>,
    /// Time between the starts of two sessions.
    pub stagger: Option<Duration>,
    /// Seed.
    pub seed: Option<u64>,
    /// Side requests a second during warm turns.
    pub side_rate: Option<f64>,
    /// Whether no side requests are sent.
    pub no_side: bool,
    /// Questions that must be answered right.
    pub recall: Option<RecallRule>,
    /// Slowdown up to which a combination passes.
    pub pass_below: Option<f64>,
    /// Slowdown above which it fails.
    pub fail_above: Option<f64>,
    /// Sessions that must fit.
    pub expect: Option<u32>,
    /// Longest wait for a first token.
    pub first_token_limit: Option<Duration>,
    /// Whether the server is reset before each combination.
    pub reset: bool,
}

/// Rounds of a simulated server, whose times hardly scatter.
pub const SIMULATED_ROUNDS: RoundsAsked = RoundsAsked::Fixed(3);

/// The experiment that was asked for; `new_seed` is for one that none was asked for, `rounds` for
/// their number.
///
/// # Errors
/// The first option that makes no sense.
pub fn spec(asked: &Asked, new_seed: u64, rounds: RoundsAsked) -> Result<LoadSpec, Refused> {
    let thresholds = Thresholds {
        pass: asked.pass_below.unwrap_or(1.5),
        fail: asked.fail_above.unwrap_or(2.0),
    };
    let (pass, fail) = (thresholds.pass, thresholds.fail);
    if !(pass.is_finite() && fail.is_finite() && pass >= 1.0 && fail >= pass) {
        return Err(Refused(format!(
            "--pass-below {pass} and --fail-above {fail} are not thresholds; give slowdowns, \
             at least 1, the first not above the second"
        )));
    }
    let rounds = Rounds::new(asked.rounds, asked.max_time, rounds)?;
    let rate = asked.side_rate.unwrap_or(0.0);
    if !(rate.is_finite() && (0.0..=1000.0).contains(&rate)) {
        return Err(Refused(format!(
            "--side-rate {rate} is not a rate; write requests a second, such as 0.25"
        )));
    }
    let limit = asked.first_token_limit.unwrap_or(Duration::from_secs(900));
    if limit.is_zero() {
        return Err(Refused(
            "--first-token-limit 0s leaves no time for a first token; give a longer one, e.g. 15m"
                .to_owned(),
        ));
    }
    let numbers = asked.sessions.as_ref().map_or_else(
        || (1..=if asked.search { 64 } else { 4 }).collect(),
        Clone::clone,
    );
    if let (Some(expect), Some(most)) = (asked.expect, numbers.last())
        && expect > *most
    {
        return Err(Refused(format!(
            "--expect {expect} cannot be answered by measuring at most {}; give more with \
             --sessions 1..{expect}",
            plural(*most, "session")
        )));
    }
    Ok(LoadSpec {
        contexts: asked.contexts.clone().unwrap_or_default(),
        sessions: sizes(&numbers),
        rounds: rounds.most,
        auto_rounds: rounds.auto,
        checks: asked.checks.unwrap_or(13),
        answer_tokens: asked.answer_tokens.unwrap_or(256),
        seed: asked.seed.unwrap_or(new_seed),
        think_s: asked.think.unwrap_or_default().into(),
        stagger_s: asked.stagger.unwrap_or_default().into(),
        side: (!asked.no_side).then_some(SideSpec {
            prompt_tokens: SIDE_PROMPT_TOKENS,
            warm_rate_per_s: rate,
            during_cold: SIDES_DURING_COLD,
        }),
        thresholds,
        recall: asked.recall.unwrap_or(RecallRule::AsAlone),
        search: asked.search,
        expect: asked.expect,
        first_token_limit_s: limit.into(),
        long_tokens: None,
        reset: asked.reset,
        shared_prefix: false,
    })
}

/// No context is longer than the server's.
///
/// # Errors
/// One is.
pub fn within(spec: &LoadSpec, server: &Server) -> Result<(), Refused> {
    let Some(limit) = server.context_tokens else {
        return Ok(());
    };
    match spec.contexts.iter().find(|c| **c > limit) {
        None => Ok(()),
        Some(context) => Err(Refused(format!(
            "--contexts {} is beyond the context of the server, which is {} ({limit} tokens); give \
             that or less",
            format_tokens(*context),
            format_tokens(limit),
        ))),
    }
}
