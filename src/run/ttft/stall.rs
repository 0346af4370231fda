//! A server that stops answering: noticed, looked at while it may still be told from a slow one,
//! and named.

use std::convert::Infallible;

use super::{TtftContext, turns};
use crate::clock::Seconds;
use crate::records::{CellStop, End, Lane, StopKind, Turn};
use crate::server::{Pulse, pulse};

/// What the server did for requests so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Served {
    sent: u32,
    generated: u32,
}

/// Looks for signs of life shortly before anybody has waited in vain: afterwards the requests are
/// gone, and a server that was merely slow looks as idle as one that had lost them.
pub async fn watch_pulse(context: &TtftContext, seen: &mut Option<Pulse>) -> Infallible {
    let limit = context.client.aim().limits_on_the_wall().first_token;
    loop {
        tokio::time::sleep(limit.mul_f64(0.8)).await;
        if context.client.in_flight() > 0 {
            *seen = Some(pulse(&context.server).await);
        }
    }
}

impl Served {
    /// Counts what came of requests.
    pub fn note(&mut self, lanes: &[Lane]) {
        let reached = turns(lanes).filter(|turn| turn.end != End::Unreachable);
        self.sent += u32::try_from(reached.count()).unwrap_or(u32::MAX);
        let generated = turns(lanes).filter(|turn| turn.ttft_s.is_some());
        self.generated += u32::try_from(generated.count()).unwrap_or(u32::MAX);
    }
}

/// Whether the server has stopped answering: somebody waited in vain, or nobody is there.
pub async fn stopped(
    context: &TtftContext,
    lanes: &[Lane],
    served: Served,
    seen: Option<Pulse>,
) -> Option<CellStop> {
    let all = |end| turns(lanes).all(|turn: &Turn| turn.end == end);
    if all(End::Unreachable) {
        let words = turns(lanes).find_map(|turn| turn.error.as_ref().map(|e| e.message.clone()));
        return Some(CellStop {
            kind: StopKind::Failed,
            words: format!(
                "the server is gone: {}",
                words.unwrap_or_else(|| "nobody answers there".to_owned())
            ),
        });
    }
    let stalled = turns(lanes).filter(|turn| turn.end == End::Stalled).count();
    if stalled == 0 {
        return None;
    }
    let pulse = match seen {
        Some(pulse) => pulse,
        None => pulse(&context.server).await,
    };
    Some(CellStop {
        kind: StopKind::Stalled,
        words: stall_words(served, stalled, context.spec.first_token_limit_s, &pulse),
    })
}

/// What a stalled server is called, and what to do.
fn stall_words(served: Served, stalled: usize, limit: Seconds, pulse: &Pulse) -> String {
    let Served { sent, generated } = served;
    let limit = limit.0;
    let first = match generated {
        0 => format!("the server accepted {sent} requests and generated for none"),
        k if usize::try_from(sent - k).unwrap_or(0) < stalled => format!(
            "the server accepted {sent} requests and began to answer {k}, then fell silent in \
             {stalled} of its answers"
        ),
        k => format!("the server accepted {sent} requests, generated for {k}, then for none"),
    };
    let life = if !pulse.is_there {
        "it is gone now; look into its log and start it again".to_owned()
    } else {
        let check = match (pulse.health, pulse.models) {
            (Some(status @ 200..=299), _) => format!("its health check says {status}"),
            (_, Some(status @ 200..=299)) => format!("its model list still answers {status}"),
            (Some(status), _) => format!("its health check says {status}"),
            (None, _) => "its health check gives no answer".to_owned(),
        };
        match pulse.requests {
            Some(n) if n > 0.0 => format!(
                "{check}, and its metrics tell of {n} requests in work; if it is only slow, give a \
                 longer --first-token-limit, else start it again"
            ),
            Some(_) => format!(
                "{check}, and by its metrics it works on nothing: it lost the requests; start it \
                 again"
            ),
            None => format!("{check}; look into its log and start it again"),
        }
    };
    format!("{first}: {stalled} waited {limit} s in vain; {life}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Pulse = Pulse {
        is_there: true,
        health: Some(200),
        models: Some(200),
        requests: None,
    };

    fn words(sent: u32, generated: u32, stalled: usize, pulse: &Pulse) -> String {
        let served = Served { sent, generated };
        stall_words(served, stalled, Seconds(600.0), pulse)
    }

    #[test]
    fn a_server_that_lives_and_generates_no_more_is_named_as_one() {
        let words = words(15, 6, 9, &ALIVE);
        let start = "the server accepted 15 requests, generated for 6, then for none: 9 waited 600 s \
                     in vain; its health check says 200";
        assert!(words.starts_with(start), "{words}");
    }

    #[test]
    fn a_server_that_lost_requests_is_told_from_one_that_may_be_slow() {
        let idle = Pulse {
            requests: Some(0.0),
            ..ALIVE
        };
        assert!(words(8, 6, 2, &idle).contains("it lost the requests"));
        let busy = Pulse {
            requests: Some(2.0),
            ..ALIVE
        };
        assert!(words(8, 6, 2, &busy).contains("longer --first-token-limit"));
    }

    #[test]
    fn a_server_that_is_gone_is_said_to_be() {
        let gone = words(3, 0, 3, &Pulse::default());
        assert!(
            gone.contains("generated for none") && gone.contains("it is gone now"),
            "{gone}"
        );
    }

    #[test]
    fn silence_in_the_middle_of_answers_is_not_called_silence_before_them() {
        assert!(words(4, 4, 2, &ALIVE).contains("fell silent in 2 of its answers"));
    }
}
