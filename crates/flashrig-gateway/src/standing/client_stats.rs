//! One client's figures and requests in flight, kept up to date from the gateway's events.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::histogram::{Histogram, ITL, TTFT};
use crate::{GatewayEvent, RequestProgress};
use flashrig_clock::Stamp;
use flashrig_record::threads::role;
use flashrig_record::{Attempt, Outcome, Role};

/// How many of the latest answers medians and rates are of.
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
    /// Time to the first token of the answer that last began, in seconds.
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
            dialect: name_of(&attempt.dialect),
            role: name_of(&attempt.role),
            end: name_of(&attempt.outcome),
        };
        let role = kind.role.clone();
        *self.requests.entry(kind).or_default() += 1;
        if is_refusal(attempt.outcome) {
            *self.refusals.entry(refusal_kind(attempt)).or_default() += 1;
        }
        let clocks = &attempt.clocks;
        if let (Some(permit), Some(body)) = (clocks.permit_s, clocks.body_s) {
            self.gate_wait.record((permit.0 - body.0).max(0.0));
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
            .record(ttft);
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
    in_flight: BTreeMap<u32, InFlight>,
    /// Whether any request so far is main.
    has_main: bool,
}

#[derive(Debug)]
struct InFlight {
    role: Role,
    queued: bool,
    progress: Arc<RequestProgress>,
    last: Option<Seen>,
}

/// The latest read that brought content.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Stamp,
    events: u64,
}

/// A request in flight at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRequest {
    /// Its number among the client's, as in the log.
    pub number: u32,
    /// What it is to the client, as far as that is known.
    pub role: Role,
    /// Where it is.
    pub state: LiveState,
}

/// Where a request in flight is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LiveState {
    /// In the gate's queue, this many seconds after its arrival.
    Queued(f64),
    /// In the server, without a token this many seconds after its arrival.
    Waiting(f64),
    /// Its answer is generated.
    Generating {
        /// From its arrival to its first token, in seconds.
        ttft_s: f64,
        /// Events with generated content per second, after the first. How many tokens are in an
        /// event is not known before the end.
        events_per_s: Option<f64>,
    },
}

impl ClientStats {
    /// The requests in flight whose body was read, at `now`.
    pub fn requests(&self, now: Stamp) -> Vec<LiveRequest> {
        let live = |(number, request): (&u32, &InFlight)| LiveRequest {
            number: *number,
            role: role::settled(request.role, self.has_main),
            state: request.state(now),
        };
        self.in_flight.iter().map(live).collect()
    }

    /// Takes in an event of the gateway.
    pub fn handle(&mut self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Held {
                number,
                role,
                progress,
                ..
            } => self.begin(*number, *role, progress, true),
            GatewayEvent::Started {
                number,
                role,
                progress,
                ..
            } => self.begin(*number, *role, progress, false),
            GatewayEvent::Answer { .. } => {}
            GatewayEvent::FirstToken { number, at } => {
                if let Some(request) = self.in_flight.get(number) {
                    let ttft = at.since(request.progress.arrived());
                    self.figures.last_ttft_s = Some(ttft.as_secs_f64());
                }
            }
            GatewayEvent::Content {
                number,
                content_events,
                at,
            } => self.content(*number, *content_events, *at),
            GatewayEvent::Finished(attempt) => {
                self.in_flight.remove(&attempt.number);
                self.figures.finished(attempt);
            }
        }
    }

    fn begin(&mut self, number: u32, role: Role, progress: &Arc<RequestProgress>, queued: bool) {
        self.has_main |= role == Role::Main;
        let request = InFlight {
            role,
            queued,
            progress: Arc::clone(progress),
            last: None,
        };
        self.in_flight.insert(number, request);
    }

    fn content(&mut self, number: u32, events: u64, at: Stamp) {
        let Some(request) = self.in_flight.get_mut(&number) else {
            return;
        };
        let last = request.last.replace(Seen { at, events });
        // One gap before the read, none between the events that came with it.
        if let Some(last) = last {
            self.figures.itl.record(at.since(last.at).as_secs_f64());
        }
        let new = events.saturating_sub(last.map_or(0, |last| last.events));
        self.figures.itl.record_many(0.0, new.saturating_sub(1));
    }
}

impl InFlight {
    fn state(&self, now: Stamp) -> LiveState {
        let arrived = self.progress.arrived();
        let so_far = now.since(arrived).as_secs_f64();
        match self.progress.generated() {
            Some(generated) => LiveState::Generating {
                ttft_s: generated.first.since(arrived).as_secs_f64(),
                events_per_s: generated.events_per_s(now),
            },
            None if self.queued => LiveState::Queued(so_far),
            None => LiveState::Waiting(so_far),
        }
    }
}

/// A value's name in records.
pub fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
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
        (Some(kind), _) => name_of(&kind),
        // The gateway's own kind.
        (None, Outcome::RejectedByGateway) => reported.unwrap_or_else(|| name_of(&attempt.outcome)),
        (None, end) => name_of(&end),
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

    /// A request that arrived at 0 and went to the server.
    fn started(stats: &mut ClientStats, number: u32, role: Role) -> Arc<RequestProgress> {
        let progress = Arc::new(RequestProgress::new(Stamp(0)));
        stats.begin(number, role, &progress, false);
        progress
    }

    fn at(ms: u64) -> Stamp {
        Stamp(ms * 1_000_000)
    }

    #[test]
    fn gaps_are_counted_per_content_event_also_when_one_read_brings_several() {
        let mut stats = ClientStats::default();
        let number = 7;
        started(&mut stats, number, Role::Main);
        for (content_events, ms) in [(2, 0), (3, 100), (5, 300)] {
            let at = at(ms);
            stats.handle(&GatewayEvent::Content {
                number,
                content_events,
                at,
            });
        }
        let itl = &stats.figures.itl;
        assert_eq!(itl.count(), 4);
        assert!((itl.sum() - 0.3).abs() < 1e-9, "{}", itl.sum());
    }

    #[test]
    fn a_request_in_flight_is_queued_then_waits_then_generates() {
        let mut stats = ClientStats::default();
        let progress = Arc::new(RequestProgress::new(at(0)));
        let state = |stats: &ClientStats, ms| stats.requests(at(ms))[0].state;
        stats.begin(1, Role::Main, &progress, true);
        assert_eq!(state(&stats, 1000), LiveState::Queued(1.0));
        stats.begin(1, Role::Main, &progress, false);
        assert_eq!(state(&stats, 2000), LiveState::Waiting(2.0));
        progress.record(1, at(3000));
        stats.handle(&GatewayEvent::FirstToken {
            number: 1,
            at: at(3000),
        });
        assert_eq!(stats.figures.last_ttft_s, Some(3.0));
        progress.record(21, at(5000));
        let generating = LiveState::Generating {
            ttft_s: 3.0,
            events_per_s: Some(10.0),
        };
        assert_eq!(state(&stats, 5000), generating);
    }

    #[test]
    fn a_chat_without_tools_is_main_until_another_request_of_its_client_offers_some() {
        let mut stats = ClientStats::default();
        let roles = |stats: &ClientStats| -> Vec<Role> {
            stats.requests(at(0)).iter().map(|one| one.role).collect()
        };
        started(&mut stats, 1, Role::Side);
        assert_eq!(roles(&stats), [Role::Main]);
        started(&mut stats, 2, Role::Main);
        assert_eq!(roles(&stats), [Role::Side, Role::Main]);
    }
}
