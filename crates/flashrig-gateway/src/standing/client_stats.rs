//! One client's figures, kept up from what the gateway tells.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;

use super::histogram::{Histogram, ITL, TTFT};
use crate::GatewayEvent;
use flashrig_clock::Stamp;
use flashrig_record::{Attempt, Outcome, Role};

/// The latest answers that medians and rates are of.
const LATEST: usize = 51;
/// What requests are counted by; each as the record stores it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    /// Protocol.
    pub dialect: String,
    /// What the request is to its session.
    pub role: String,
    /// How it ended.
    pub end: String,
}

/// What a client's requests add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFigures {
    /// Requests that ended.
    pub requests: BTreeMap<RequestKind, u64>,
    /// Refused and failed requests, by kind.
    pub refusals: BTreeMap<String, u64>,
    /// From a request's arrival to its first generated token, in seconds, by role.
    pub ttft: BTreeMap<String, Histogram>,
    /// From one content event to the next, in seconds.
    pub itl: Histogram,
    /// Held back by the gate, in seconds.
    pub gate_wait: Histogram,
    /// Prompt tokens, cached included; `None` until a server told any.
    pub input_tokens: Option<u64>,
    /// Prompt tokens from the server's cache; `None` until a server told any.
    pub cached_tokens: Option<u64>,
    /// Prompt tokens of those answers that told the cached ones too: what a share is of.
    pub input_tokens_with_cached: u64,
    /// Generated tokens; `None` until a server told any.
    pub output_tokens: Option<u64>,
    /// Whole answers to generation requests in which the server told no tokens.
    pub answers_without_usage: u64,
    /// Time to the first token of the latest answer, in seconds.
    pub last_ttft_s: Option<f64>,
    latest_ttft: VecDeque<f64>,
    /// Tokens after the first, and the seconds that they took.
    latest_decode: VecDeque<(u64, f64)>,
}

impl Default for ClientFigures {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            refusals: BTreeMap::new(),
            ttft: BTreeMap::new(),
            itl: Histogram::new(ITL),
            gate_wait: Histogram::new(TTFT),
            input_tokens: None,
            cached_tokens: None,
            input_tokens_with_cached: 0,
            output_tokens: None,
            answers_without_usage: 0,
            last_ttft_s: None,
            latest_ttft: VecDeque::new(),
            latest_decode: VecDeque::new(),
        }
    }
}

impl ClientFigures {
    /// How many requests ended.
    pub fn ended(&self) -> u64 {
        self.requests.values().sum()
    }

    /// How many were refused or failed.
    pub fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    /// The median time to the first token over the latest answers, in seconds.
    pub fn median_ttft_s(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.latest_ttft.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Tokens per second while decoding, over the latest answers.
    pub fn tokens_per_s(&self) -> Option<f64> {
        let tokens: u64 = self.latest_decode.iter().map(|(tokens, _)| tokens).sum();
        let seconds: f64 = self.latest_decode.iter().map(|(_, seconds)| seconds).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        let rate = tokens as f64 / seconds;
        (seconds > 0.0).then_some(rate)
    }

    /// The share of prompt tokens that came from the server's cache, 0 to 1.
    pub fn cached_share(&self) -> Option<f64> {
        let (cached, all) = (self.cached_tokens?, self.input_tokens_with_cached);
        #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
        let share = cached as f64 / all as f64;
        (all > 0).then_some(share)
    }

    fn finished(&mut self, attempt: &Attempt) {
        let kind = RequestKind {
            dialect: word(&attempt.dialect),
            role: word(&attempt.role),
            end: word(&attempt.outcome),
        };
        let role = kind.role.clone();
        *self.requests.entry(kind).or_default() += 1;
        if is_refusal(attempt.outcome) {
            *self.refusals.entry(refusal_kind(attempt)).or_default() += 1;
        }
        let clocks = &attempt.clocks;
        if let (Some(permit), Some(body)) = (clocks.permit_s, clocks.body_s) {
            self.gate_wait.note((permit.0 - body.0).max(0.0));
        }
        if attempt.role != Role::Probe {
            self.usage(attempt);
        }
        let Some(first) = clocks.first_token_s else {
            return;
        };
        let ttft = (first.0 - clocks.head_s.0).max(0.0);
        self.ttft
            .entry(role)
            .or_insert_with(|| Histogram::new(TTFT))
            .note(ttft);
        self.last_ttft_s = Some(ttft);
        push(&mut self.latest_ttft, ttft);
        if let (Some(tokens), Some(last)) = (attempt.output_tokens, clocks.last_token_s)
            && tokens > 1
            && last.0 > first.0
        {
            push(&mut self.latest_decode, (tokens - 1, last.0 - first.0));
        }
    }

    fn usage(&mut self, attempt: &Attempt) {
        if attempt.outcome == Outcome::Complete
            && (attempt.input_tokens.is_none() || attempt.output_tokens.is_none())
        {
            self.answers_without_usage += 1;
        }
        add(&mut self.input_tokens, attempt.input_tokens);
        add(&mut self.output_tokens, attempt.output_tokens);
        if attempt.cached_tokens.is_some() {
            add(&mut self.cached_tokens, attempt.cached_tokens);
            self.input_tokens_with_cached += attempt.input_tokens.unwrap_or(0);
        }
    }
}

/// A client's figures and its requests in flight.
#[derive(Debug, Default)]
pub struct ClientStats {
    /// The figures.
    pub figures: ClientFigures,
    generating: HashMap<u32, Generating>,
}

#[derive(Debug)]
struct Generating {
    last: Stamp,
    events: u64,
}

impl ClientStats {
    /// How many answers have begun to be generated and have not ended.
    pub fn generating(&self) -> usize {
        self.generating.len()
    }

    /// Takes in what the gateway tells.
    pub fn handle(&mut self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Held { .. }
            | GatewayEvent::Started { .. }
            | GatewayEvent::Answer { .. } => {}
            GatewayEvent::FirstToken { number, at } => {
                let begun = Generating {
                    last: *at,
                    events: 0,
                };
                self.generating.insert(*number, begun);
            }
            GatewayEvent::Content {
                number,
                content_events,
                at,
            } => {
                let Some(known) = self.generating.get_mut(number) else {
                    return;
                };
                let new = content_events.saturating_sub(known.events);
                // One gap before the read, none between the events that came with it.
                if known.events > 0 {
                    self.figures.itl.note(at.since(known.last).as_secs_f64());
                }
                self.figures.itl.note_many(0.0, new.saturating_sub(1));
                known.events = *content_events;
                known.last = *at;
            }
            GatewayEvent::Finished(attempt) => {
                self.generating.remove(&attempt.number);
                self.figures.finished(attempt);
            }
        }
    }
}

/// A value as records store it.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

/// Whether the request got no answer because somebody refused or failed it.
pub fn is_refusal(end: Outcome) -> bool {
    matches!(
        end,
        Outcome::Refused
            | Outcome::Overloaded
            | Outcome::UpstreamError
            | Outcome::Unreachable
            | Outcome::RejectedByGateway
    )
}

/// Why a request was refused or failed. All of them are flashrig's own words, of which there are
/// few: a server's could be any, and fill the memory.
pub fn refusal_kind(attempt: &Attempt) -> String {
    let reported = attempt.error.as_ref().and_then(|error| error.kind.clone());
    match (attempt.refusal, attempt.outcome) {
        (Some(kind), _) => word(&kind),
        // The gateway's own kind.
        (None, Outcome::RejectedByGateway) => reported.unwrap_or_else(|| word(&attempt.outcome)),
        (None, end) => word(&end),
    }
}

fn add(sum: &mut Option<u64>, part: Option<u64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0) + part);
    }
}

fn push<T>(latest: &mut VecDeque<T>, value: T) {
    if latest.len() == LATEST {
        latest.pop_front();
    }
    latest.push_back(value);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flashrig_clock::Seconds;
    use flashrig_record::testing::attempt;
    use flashrig_record::{ErrorDetail, RefusalKind};

    /// An attempt of one second to its first token and two of decoding, 20 tokens.
    pub fn answered() -> Attempt {
        let mut attempt = attempt(Role::Main, Outcome::Complete, 1.0, Some(2.0), 4.5);
        attempt.clocks.body_s = Some(Seconds(1.0));
        attempt.clocks.permit_s = Some(Seconds(1.5));
        attempt.clocks.last_token_s = Some(Seconds(4.0));
        attempt.output_tokens = Some(21);
        attempt
    }

    fn after(attempts: &[Attempt]) -> ClientFigures {
        let mut client_stats = ClientStats::default();
        for attempt in attempts {
            client_stats.handle(&GatewayEvent::Finished(Box::new(attempt.clone())));
        }
        client_stats.figures
    }

    #[test]
    fn an_answer_counts_by_its_clocks_and_tokens() {
        let figures = after(&[answered()]);
        assert_eq!(figures.median_ttft_s(), Some(1.0));
        assert_eq!(figures.tokens_per_s(), Some(10.0));
        assert_eq!(figures.cached_share(), Some(0.4));
        assert_eq!(
            (figures.gate_wait.count(), figures.gate_wait.sum()),
            (1, 0.5)
        );
        assert_eq!((figures.ended(), figures.refused()), (1, 0));
    }

    #[test]
    fn tokens_that_no_server_told_are_unknown_and_never_zero() {
        let mut silent = answered();
        (silent.input_tokens, silent.cached_tokens) = (None, None);
        silent.output_tokens = None;
        let figures = after(&[silent.clone()]);
        assert_eq!((figures.input_tokens, figures.output_tokens), (None, None));
        assert_eq!(
            (figures.cached_share(), figures.tokens_per_s()),
            (None, None)
        );
        assert_eq!(figures.answers_without_usage, 1);
        // And they take nothing off the share of the others.
        assert_eq!(after(&[silent, answered()]).cached_share(), Some(0.4));
    }

    #[test]
    fn refusals_are_counted_by_flashrigs_own_kinds_whatever_words_a_server_makes_up() {
        let kind = |end, refusal, reported: &str| {
            let mut refused = attempt(Role::Main, end, 0.0, None, 0.1);
            refused.refusal = refusal;
            refused.error = Some(ErrorDetail {
                kind: Some(reported.to_owned()),
                ..ErrorDetail::default()
            });
            refused
        };
        let figures = after(&[
            kind(
                Outcome::Refused,
                Some(RefusalKind::ContextTooSmall),
                "made up 1",
            ),
            kind(
                Outcome::Refused,
                Some(RefusalKind::ContextTooSmall),
                "made up 2",
            ),
            kind(Outcome::RejectedByGateway, None, "invalid_api_key"),
            kind(Outcome::UpstreamError, None, "made up 3"),
            kind(Outcome::Unreachable, None, "server_unreachable"),
        ]);
        let counted: Vec<(&str, u64)> = figures
            .refusals
            .iter()
            .map(|(kind, count)| (kind.as_str(), *count))
            .collect();
        let want = [
            ("context_too_small", 2),
            ("invalid_api_key", 1),
            ("unreachable", 1),
            ("upstream_error", 1),
        ];
        assert_eq!(counted, want);
    }

    #[test]
    fn gaps_are_counted_per_content_event_also_when_one_read_brings_several() {
        let mut client_stats = ClientStats::default();
        let at = |ms: u64| Stamp(ms * 1_000_000);
        let number = 7;
        client_stats.handle(&GatewayEvent::FirstToken { number, at: at(0) });
        for (content_events, ms) in [(2, 0), (3, 100), (5, 300)] {
            let at = at(ms);
            client_stats.handle(&GatewayEvent::Content {
                number,
                content_events,
                at,
            });
        }
        assert_eq!(client_stats.generating(), 1);
        let itl = &client_stats.figures.itl;
        assert_eq!(itl.count(), 4);
        assert!((itl.sum() - 0.3).abs() < 1e-9, "{}", itl.sum());
    }
}
