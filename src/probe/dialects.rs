//! Which protocols a server streams in, whether it takes tools there, and how soon its first token
//! comes.

use flashrig_clock::Seconds;
use flashrig_load::{Aim, LoadDialect, LoadError, LoadLimits, Trial, trial};
use flashrig_record::{Attempt, Dialect, DialectTried, FirstToken, Outcome, ToolTried};
use flashrig_server::Opened;

/// Lines of the small prompt whose first token is timed.
const SMALL_LINES: u64 = 8;
/// Tokens of the larger one.
pub(super) const LARGE_TOKENS: u64 = 2048;
/// What a line costs where the server counts nothing.
const USUAL_TOKENS_PER_LINE: f64 = 14.0;
/// Room for the answer.
const ANSWER_TOKENS: u64 = 64;

/// What was tried.
pub(super) struct Tried {
    pub(super) rows: Vec<DialectTried>,
    /// The first protocol that streams, and the prompt tokens of its small request.
    pub(super) works: Option<(Aim, Option<u64>)>,
    /// The words of the request that nothing was generated for.
    pub(super) stalled: Option<String>,
}

/// Tries one small request in each protocol, and one with a tool where that streams. After a
/// request for which nothing is generated none is tried any more.
pub(super) async fn try_all(
    server: &Opened,
    model: &str,
    speed: f64,
    limits: LoadLimits,
    say: &impl Fn(&str),
) -> Tried {
    let mut tried = Tried {
        rows: Vec::new(),
        works: None,
        stalled: None,
    };
    for dialect in [LoadDialect::OpenaiChat, LoadDialect::AnthropicMessages] {
        let mut row = DialectTried {
            dialect: dialect.dialect(),
            streams: None,
            message: None,
            tool: None,
            in_profile: in_profile(server, dialect.dialect()),
        };
        if tried.stalled.is_some() {
            row.message = Some("not tried".to_owned());
            tried.rows.push(row);
            continue;
        }
        say(&format!("trying {}", dialect.path()));
        let aim = Aim {
            upstream: server.upstream.clone(),
            model: model.to_owned(),
            dialect,
            limits,
            speed,
        };
        let (attempt, outcome) = trial(&aim, Trial::Ready).await;
        match outcome {
            Ok(()) => {
                row.streams = Some(true);
                let (tool, stalled) = offer(&aim).await;
                row.tool = Some(tool);
                tried.stalled = stalled;
                tried.works.get_or_insert((aim, attempt.input_tokens));
            }
            Err(error) => {
                row.streams = Some(false);
                row.message = Some(error.to_string());
                tried.stalled = silence(&attempt, &error);
            }
        }
        tried.rows.push(row);
    }
    tried
}

fn in_profile(server: &Opened, dialect: Dialect) -> Option<bool> {
    let reported = server.interface.dialects.as_ref()?;
    Some(reported.contains(&dialect))
}

/// Offers a tool. What nothing was generated for is told beside it.
async fn offer(aim: &Aim) -> (ToolTried, Option<String>) {
    let (attempt, outcome) = trial(aim, Trial::Tool).await;
    match outcome {
        _ if attempt.outcome == Outcome::Complete && !attempt.tool_calls.is_empty() => {
            (ToolTried::Called, None)
        }
        Ok(()) => (ToolTried::NotCalled, None),
        Err(error) => {
            let stalled = silence(&attempt, &error).map(|message| message + " with a tool offered");
            let message = error.to_string();
            (ToolTried::Refused { message }, stalled)
        }
    }
}

/// Times the first token of a small prompt, and of one of about [`LARGE_TOKENS`] tokens when
/// `context` has room for it. The words of a request that nothing was generated for are told beside
/// it.
pub(super) async fn time(
    aim: &Aim,
    ready_tokens: Option<u64>,
    context: Option<u64>,
    seed: u64,
) -> (Vec<FirstToken>, Option<String>) {
    let mut rows = Vec::new();
    let small = Trial::Lines {
        lines: SMALL_LINES,
        seed,
    };
    let (attempt, outcome) = trial(aim, small).await;
    let small_tokens = attempt.input_tokens;
    rows.push(row(aim, None, &attempt, &outcome));
    if let Some(stalled) = outcome.err().and_then(|e| silence(&attempt, &e)) {
        return (rows, Some(stalled));
    }
    if context.is_some_and(|context| context < LARGE_TOKENS + ANSWER_TOKENS) {
        return (rows, None);
    }
    let large = Trial::Lines {
        lines: lines(ready_tokens, small_tokens),
        seed: !seed,
    };
    let (attempt, outcome) = trial(aim, large).await;
    rows.push(row(aim, Some(LARGE_TOKENS), &attempt, &outcome));
    let stalled = outcome.err().and_then(|e| silence(&attempt, &e));
    (rows, stalled)
}

/// The words of a request that nothing was generated for; `None` when it failed otherwise.
fn silence(attempt: &Attempt, error: &LoadError) -> Option<String> {
    let LoadError::Stalled { path, message } = error else {
        return None;
    };
    let after = match attempt.clocks.first_token_s {
        Some(_) => "after a beginning ",
        None => "",
    };
    Some(format!("{after}{message}, on {path}"))
}

/// How many lines make the larger prompt, by what the server counted for none and for a few.
fn lines(none: Option<u64>, few: Option<u64>) -> u64 {
    let none_or_0 = none.unwrap_or(0);
    let per_line = none
        .zip(few)
        .filter(|(none, few)| few > none)
        .map_or(USUAL_TOKENS_PER_LINE, |(none, few)| {
            (few - none) as f64 / SMALL_LINES as f64
        });
    let room = LARGE_TOKENS.saturating_sub(none_or_0) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of a few hundred"
    )]
    let lines = (room / per_line).round() as u64;
    // A line has a dozen words, so a token or more each: counts that say otherwise are not believed.
    lines.clamp(1, LARGE_TOKENS / 4)
}

fn row(
    aim: &Aim,
    aimed_tokens: Option<u64>,
    attempt: &Attempt,
    outcome: &Result<(), LoadError>,
) -> FirstToken {
    let clocks = &attempt.clocks;
    let speed = aim.speed;
    FirstToken {
        aimed_tokens,
        prompt_tokens: attempt.input_tokens,
        cached_tokens: attempt.cached_tokens,
        first_token_s: clocks
            .first_token_s
            .zip(clocks.sent_s)
            .map(|(token, sent)| Seconds((token.0 - sent.0) * speed)),
        message: outcome.as_ref().err().map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_prompt_is_sized_by_what_the_server_counted_and_bounded_whatever_it_says() {
        assert_eq!(lines(Some(20), Some(20 + 8 * 13)), 156);
        assert_eq!(lines(None, None), 146);
        assert_eq!(lines(Some(20), Some(20)), 145, "no counts, the usual size");
        assert_eq!(lines(Some(20), Some(21)), 512);
        assert_eq!(lines(Some(5000), Some(6000)), 1);
    }
}
