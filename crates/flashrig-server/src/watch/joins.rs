//! Refusals that clients had, and the lines of the log that tell of them. Pure.

use crate::log::LogEvent;
use flashrig_clock::Seconds;
use flashrig_record::{Attempt, JoinedRefusal};

/// A line may come so much later than the answer: it is written, and then read.
pub const LATE_S: f64 = 1.0;

/// A refusal as a client had it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub session: String,
    pub request: u32,
    pub sent_s: f64,
    pub answered_s: f64,
    pub status: Option<u16>,
    pub message: Option<String>,
}

/// A refusal as the log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejecting {
    pub at_s: f64,
    pub line: String,
    /// What is this request's own: tokens and memory that it needed.
    pub figures: Vec<u64>,
}

impl Refused {
    /// That of a request which was refused.
    pub fn of(session: &str, attempt: &Attempt) -> Self {
        let clocks = &attempt.clocks;
        Self {
            session: session.to_owned(),
            request: attempt.number,
            sent_s: clocks.sent_s.unwrap_or(clocks.head_s).0,
            answered_s: clocks.end_s.0,
            status: attempt.status,
            message: attempt.error.as_ref().map(|error| error.message.clone()),
        }
    }

    fn fits(&self, line: &Rejecting) -> bool {
        (self.sent_s..=self.answered_s + LATE_S).contains(&line.at_s)
    }

    /// Whether one of the line's own figures stands in the words.
    fn names(&self, line: &Rejecting) -> bool {
        let message = self.message.as_deref().unwrap_or_default().replace(',', "");
        let mut numbers = message.split(|c: char| !c.is_ascii_digit());
        numbers.any(|number| line.figures.iter().any(|f| number == f.to_string()))
    }
}

impl Rejecting {
    /// `None` for what is no refusal.
    pub fn of(at_s: f64, event: &LogEvent, line: &str) -> Option<Self> {
        let LogEvent::Refused {
            prompt_tokens,
            needed_tokens,
            needed_mb,
            ..
        } = event
        else {
            return None;
        };
        let own = [prompt_tokens, needed_tokens, needed_mb];
        Some(Self {
            at_s,
            line: line.to_owned(),
            figures: own.into_iter().flatten().copied().collect(),
        })
    }
}

/// Joins each refusal with a line: one whose figures the answer repeats, or else by time alone, in
/// order. No line tells of two refusals. What has no fellow stands alone. In order of time.
pub fn join(mut clients: Vec<Refused>, mut log: Vec<Rejecting>) -> Vec<JoinedRefusal> {
    clients.sort_by(|a, b| a.answered_s.total_cmp(&b.answered_s));
    log.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut joined: Vec<Option<usize>> = vec![None; clients.len()];
    let mut taken = vec![false; log.len()];
    for by_figures in [true, false] {
        for (at, line) in log.iter().enumerate() {
            if taken[at] {
                continue;
            }
            // The one whose time is over first: a later line can still tell of the others.
            let free = clients.iter().enumerate().find(|(index, client)| {
                joined[*index].is_none() && client.fits(line) && (!by_figures || client.names(line))
            });
            if let Some((index, _)) = free {
                joined[index] = Some(at);
                taken[at] = true;
            }
        }
    }
    let of_clients = clients
        .into_iter()
        .zip(joined)
        .map(|(client, line)| JoinedRefusal {
            session: Some(client.session),
            request: Some(client.request),
            at_s: Seconds(client.answered_s),
            status: client.status,
            answer: client.message,
            log: line.map(|at| log[at].line.clone()),
        });
    let mut all: Vec<JoinedRefusal> = of_clients.collect();
    let alone = log.iter().zip(taken).filter(|(_, taken)| !taken);
    all.extend(alone.map(|(line, _)| JoinedRefusal {
        session: None,
        request: None,
        at_s: Seconds(line.at_s),
        status: None,
        answer: None,
        log: Some(line.line.clone()),
    }));
    all.sort_by(|a, b| a.at_s.0.total_cmp(&b.at_s.0));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(request: u32, sent_s: f64, answered_s: f64, message: &str) -> Refused {
        Refused {
            session: "s1".to_owned(),
            request,
            sent_s,
            answered_s,
            status: Some(400),
            message: Some(message.to_owned()),
        }
    }

    fn line(at_s: f64, line: &str, figures: &[u64]) -> Rejecting {
        Rejecting {
            at_s,
            line: line.to_owned(),
            figures: figures.to_vec(),
        }
    }

    fn pairs(joined: &[JoinedRefusal]) -> Vec<(Option<u32>, Option<&str>)> {
        joined
            .iter()
            .map(|j| (j.request, j.log.as_deref()))
            .collect()
    }

    #[test]
    fn a_line_between_the_request_and_a_second_after_its_answer_is_its_own() {
        for (at, fits) in [(0.9, false), (1.0, true), (2.9, true), (3.1, false)] {
            let joined = join(vec![client(1, 1.0, 2.0, "no")], vec![line(at, "l", &[])]);
            assert_eq!(joined.len(), if fits { 1 } else { 2 }, "{at}");
        }
    }

    #[test]
    fn lines_are_given_out_in_order_and_each_once() {
        let clients = vec![client(2, 0.0, 2.0, "b"), client(1, 0.0, 1.0, "a")];
        let log = vec![line(0.5, "first", &[]), line(1.5, "second", &[])];
        let joined = join(clients, log);
        assert_eq!(
            pairs(&joined),
            [(Some(1), Some("first")), (Some(2), Some("second"))]
        );
        let one_line = join(
            vec![client(1, 0.0, 1.0, "a"), client(2, 0.0, 1.0, "b")],
            vec![line(0.5, "only", &[])],
        );
        assert_eq!(pairs(&one_line), [(Some(1), Some("only")), (Some(2), None)]);
    }

    #[test]
    fn a_line_whose_figures_the_answer_repeats_is_its_own_though_another_was_first() {
        let clients = vec![
            client(1, 0.0, 1.0, "Prompt (12,000 tokens) requires too much"),
            client(2, 0.0, 1.1, "Prompt (9000 tokens) requires too much"),
        ];
        let log = vec![
            line(0.5, "prompt 9000 tokens", &[9000]),
            line(0.6, "prompt 12000 tokens", &[12_000]),
        ];
        assert_eq!(
            pairs(&join(clients, log)),
            [
                (Some(1), Some("prompt 12000 tokens")),
                (Some(2), Some("prompt 9000 tokens"))
            ]
        );
    }

    #[test]
    fn a_line_without_a_clients_refusal_stands_alone_at_its_time() {
        let joined = join(
            vec![client(1, 5.0, 6.0, "no")],
            vec![line(1.0, "who?", &[])],
        );
        assert_eq!(pairs(&joined), [(None, Some("who?")), (Some(1), None)]);
        assert_eq!(joined[0].at_s, Seconds(1.0));
    }
}
