//! What is known of a server that accepts requests and does not generate: counts, signs of life,
//! the end of its log. Pure.

use crate::log::speaks_of_a_fault;
use flashrig_clock::Seconds;
use flashrig_record::{LogTail, Pulse, Stall};

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

/// What is known of a stalled server: `waited` of its answers got nothing for `limit_s`.
pub fn stall(
    served: Served,
    waited: usize,
    limit_s: Seconds,
    pulse: Pulse,
    last_lines: &[String],
) -> Stall {
    Stall {
        sent: served.sent,
        generated: served.generated,
        waited: u32::try_from(waited).unwrap_or(u32::MAX),
        limit_s,
        pulse,
        log: log_tail(last_lines),
    }
}

/// The end of a log. A fault that stands before it, where a server that goes on answering health
/// checks has it, is kept too.
pub fn log_tail(last_lines: &[String]) -> LogTail {
    let skip = last_lines.len().saturating_sub(SHOWN_LINES);
    let mut earlier = last_lines[..skip].iter().rev();
    let fault = earlier.find(|line| speaks_of_a_fault(line));
    let shown = last_lines[skip..].iter().map(|line| line.trim());
    LogTail {
        fault: fault.map(|line| cut(line.trim())),
        last: shown.filter(|line| !line.is_empty()).map(cut).collect(),
    }
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
        let reported = log_tail(&log).to_string();
        let start =
            "; its log says \"RuntimeError: There is no Stream(cpu, 0)\"; its log ends with";
        assert!(reported.starts_with(start), "{reported}");
        assert!(!log_tail(&log[1..]).to_string().contains("its log says"));
    }

    const ALIVE: Pulse = Pulse {
        is_there: true,
        health: Some(200),
        models: Some(200),
        requests: None,
    };

    fn message(sent: u32, generated: u32, waited: usize, pulse: &Pulse) -> String {
        let served = Served { sent, generated };
        stall(served, waited, Seconds(60.0), *pulse, &[]).to_string()
    }

    #[test]
    fn a_server_that_lives_and_generates_no_more_is_named_as_one() {
        let message = message(15, 6, 9, &ALIVE);
        let start = "the server accepted 15 requests, generated for 6, then for none: 9 waited 60 s \
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
        let message = stall(served, 1, Seconds(5.0), ALIVE, &lines).to_string();
        assert!(
            message.ends_with("start it again; its log ends with \"two\", \"four\""),
            "{message}"
        );
        assert!(message.starts_with("the server accepted 1 request and"));
        assert_eq!(log_tail(&[]).to_string(), "");
        let long = log_tail(&["x".repeat(1000)]).to_string();
        assert!(long.ends_with("x…\"") && long.chars().count() < 200);
    }
}
