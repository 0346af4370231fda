//! What is said of a server that accepts requests and does not generate: counts, signs of life, the
//! end of its log, and what to do. Pure.

use super::pulse::Pulse;
use crate::log::speaks_of_a_fault;

/// Lines of a log that are shown; the record has more.
const SHOWN_LINES: usize = 3;
/// Characters shown of each.
const SHOWN_CHARS: usize = 160;

/// What the server did for requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that reached it.
    pub sent: u32,
    /// Those of them that got a token.
    pub generated: u32,
}

/// What a stalled server is called, and what to do. `who` is the server as the sentence calls it;
/// `waited` of its answers got nothing for `limit`, as people write it.
pub fn stall_message(
    who: &str,
    served: Served,
    waited: usize,
    limit: &str,
    pulse: &Pulse,
    last_lines: &[String],
) -> String {
    let Served { sent, generated } = served;
    let requests = if sent == 1 { "request" } else { "requests" };
    let first = match generated {
        0 => format!("{who} accepted {sent} {requests} and generated for none"),
        k if usize::try_from(sent.saturating_sub(k)).unwrap_or(0) < waited => format!(
            "{who} accepted {sent} {requests} and began to answer {k}, but fell silent in \
             {waited} of its answers"
        ),
        k => format!("{who} accepted {sent} {requests}, generated for {k}, then for none"),
    };
    format!(
        "{first}: {waited} waited {limit} in vain; {}",
        life_message(pulse, last_lines)
    )
}

/// Signs of life in words, what to do, and the end of the log.
pub fn life_message(pulse: &Pulse, last_lines: &[String]) -> String {
    format!("{}{}", signs(pulse), log_tail(last_lines))
}

fn signs(pulse: &Pulse) -> String {
    if !pulse.is_there {
        return "it is gone now; look into its log and start it again".to_owned();
    }
    let check = health_message(pulse);
    match pulse.requests {
        Some(n) if n > 0.0 => format!(
            "{check}, and its metrics tell of {n} requests in work; if it is only slow, give a \
             longer --first-token-limit, else start it again"
        ),
        Some(_) => format!(
            "{check}, and by its metrics it works on nothing: it lost the requests; start it again"
        ),
        None => format!("{check}; look into its log and start it again"),
    }
}

/// What still answers.
fn health_message(pulse: &Pulse) -> String {
    match (pulse.health, pulse.models) {
        (Some(status @ 200..=299), _) => format!("its health check says {status}"),
        (_, Some(status @ 200..=299)) => format!("its model list still answers {status}"),
        (Some(status), _) => format!("its health check says {status}"),
        (None, _) => "its health check gives no answer".to_owned(),
    }
}

/// The end of a log as the end of a sentence; empty when the log is not known or says nothing. A
/// fault that stands before the end, where a server that goes on answering health checks has it,
/// is told too.
pub fn log_tail(last_lines: &[String]) -> String {
    let skip = last_lines.len().saturating_sub(SHOWN_LINES);
    let mut earlier = last_lines[..skip].iter().rev();
    let fault = earlier.find(|line| speaks_of_a_fault(line));
    let fault = fault.map_or_else(String::new, |line| {
        format!("; its log says \"{}\"", cut(line.trim()))
    });
    let shown: Vec<String> = last_lines[skip..]
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .map(|line| format!("\"{}\"", cut(line)))
        .collect();
    if shown.is_empty() {
        return fault;
    }
    format!("{fault}; its log ends with {}", shown.join(", "))
}

fn cut(line: &str) -> String {
    let short: String = line.chars().take(SHOWN_CHARS).collect();
    match short.len() < line.len() {
        true => short + "…",
        false => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_before_the_end_of_the_log_is_told_with_the_end() {
        let mut log = vec!["RuntimeError: There is no Stream(cpu, 0)".to_owned()];
        log.extend((0..SHOWN_LINES).map(|n| format!("GET /health {n}")));
        let reported = log_tail(&log);
        let start =
            "; its log says \"RuntimeError: There is no Stream(cpu, 0)\"; its log ends with";
        assert!(reported.starts_with(start), "{reported}");
        assert!(!log_tail(&log[1..]).contains("its log says"));
    }

    const ALIVE: Pulse = Pulse {
        is_there: true,
        health: Some(200),
        models: Some(200),
        requests: None,
    };

    fn message(sent: u32, generated: u32, waited: usize, pulse: &Pulse) -> String {
        stall_message(
            "the server",
            Served { sent, generated },
            waited,
            "600 s",
            pulse,
            &[],
        )
    }

    #[test]
    fn a_server_that_lives_and_generates_no_more_is_named_as_one() {
        let message = message(15, 6, 9, &ALIVE);
        let start = "the server accepted 15 requests, generated for 6, then for none: 9 waited 600 s \
                     in vain; its health check says 200";
        assert!(message.starts_with(start), "{message}");
    }

    #[test]
    fn a_server_that_lost_requests_is_told_from_one_that_may_be_slow() {
        let idle = Pulse {
            requests: Some(0.0),
            ..ALIVE
        };
        assert!(message(8, 6, 2, &idle).contains("it lost the requests"));
        let busy = Pulse {
            requests: Some(2.0),
            ..ALIVE
        };
        assert!(message(8, 6, 2, &busy).contains("longer --first-token-limit"));
    }

    #[test]
    fn a_server_that_is_gone_is_said_to_be() {
        let gone = message(3, 0, 3, &Pulse::default());
        assert!(
            gone.contains("generated for none") && gone.contains("it is gone now"),
            "{gone}"
        );
    }

    #[test]
    fn silence_in_the_middle_of_answers_is_not_called_silence_before_them() {
        assert!(message(4, 4, 2, &ALIVE).contains("fell silent in 2 of its answers"));
    }

    #[test]
    fn the_end_of_the_log_closes_the_words_and_long_lines_are_cut() {
        let lines = ["one", "two", "", "four"].map(str::to_owned);
        let served = Served {
            sent: 1,
            generated: 0,
        };
        let message = stall_message("the server", served, 1, "5 s", &ALIVE, &lines);
        assert!(
            message.ends_with("start it again; its log ends with \"two\", \"four\""),
            "{message}"
        );
        assert!(message.starts_with("the server accepted 1 request and"));
        assert_eq!(log_tail(&[]), "");
        let long = log_tail(&["x".repeat(1000)]);
        assert!(long.ends_with("x…\"") && long.chars().count() < 200);
    }
}
