//! Where a session's wall went.
//!
//! Every instant of the wall belongs to exactly one part. A main request in flight takes
//! precedence over a side request in flight; only where no request is open is the time start-up,
//! back-off, between or exit. The parts therefore add up to the wall.

use flashrig_clock::Seconds;
use flashrig_record::{Attempt, Outcome, Role, Split};

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Startup,
    Gate,
    Waiting,
    Decoding,
    Backoff,
    Between,
    Exit,
}

/// One attempt's stay in the server, as instants in seconds.
struct Stay {
    role: Role,
    arrived: f64,
    permitted: f64,
    first_token: f64,
    ended: f64,
    failed: bool,
}

/// Splits the wall from `start` to `end` (seconds since the start of the run).
///
/// `None` when the session made no request: there is nothing to split by.
pub fn split(start: Seconds, end: Seconds, attempts: &[Attempt]) -> Option<Split> {
    let (start, end) = (start.0, end.0.max(start.0));
    let stays: Vec<Stay> = attempts
        .iter()
        .filter(|a| a.role != Role::Probe && a.outcome != Outcome::RejectedByGateway)
        .map(|a| stay(a, start, end))
        .collect();
    let first_main = stays
        .iter()
        .filter(|s| s.role == Role::Main)
        .map(|s| s.arrived)
        .reduce(f64::min)?;
    let last_end = stays.iter().map(|s| s.ended).fold(start, f64::max);

    let mut cuts: Vec<f64> = vec![start, end, first_main, last_end];
    for s in &stays {
        cuts.extend([s.arrived, s.permitted, s.first_token, s.ended]);
    }
    cuts.retain(|t| (start..=end).contains(t));
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();

    let mut split = Split::default();
    for pair in cuts.windows(2) {
        let middle = f64::midpoint(pair[0], pair[1]);
        let slot = match part_at(middle, first_main, last_end, &stays) {
            Part::Startup => &mut split.startup_s,
            Part::Gate => &mut split.gate_s,
            Part::Waiting => &mut split.waiting_s,
            Part::Decoding => &mut split.decoding_s,
            Part::Backoff => &mut split.backoff_s,
            Part::Between => &mut split.between_s,
            Part::Exit => &mut split.exit_s,
        };
        slot.0 += pair[1] - pair[0];
    }
    Some(split)
}

fn stay(attempt: &Attempt, start: f64, end: f64) -> Stay {
    let clocks = &attempt.clocks;
    let clamp = |t: f64| t.clamp(start, end);
    let arrived = clamp(clocks.head_s.0);
    let ended = clamp(clocks.end_s.0).max(arrived);
    // The gate's part runs from the body's end to the permit; without a body clock there is none.
    let permitted = match (clocks.body_s, clocks.permit_s) {
        (Some(body), Some(permit)) if permit.0 > body.0 => clamp(permit.0),
        // It left while it stood in line.
        (Some(_), None) if attempt.gate.is_some() => ended,
        _ => arrived,
    };
    // An answer without any token kept the agent waiting to its end.
    let first_token = clocks.first_token_s.map_or(ended, |t| clamp(t.0));
    Stay {
        role: attempt.role,
        arrived,
        permitted: permitted.clamp(arrived, ended),
        first_token: first_token.clamp(arrived, ended),
        ended,
        failed: is_failed(attempt.outcome),
    }
}

/// Whether a client would try again after this.
fn is_failed(end: Outcome) -> bool {
    match end {
        Outcome::Complete | Outcome::ClientAborted | Outcome::RejectedByGateway => false,
        Outcome::Truncated
        | Outcome::Stalled
        | Outcome::ErrorInStream
        | Outcome::Refused
        | Outcome::Overloaded
        | Outcome::UpstreamError
        | Outcome::Unreachable => true,
    }
}

fn part_at(t: f64, first_main: f64, last_end: f64, stays: &[Stay]) -> Part {
    let open = |role: Role| {
        stays
            .iter()
            .filter(move |s| s.role == role && s.arrived <= t && t < s.ended)
    };
    if let Some(part) = busiest(open(Role::Main), t) {
        return part;
    }
    if let Some(part) = busiest(open(Role::SubAgent), t) {
        return part;
    }
    if t < first_main {
        return Part::Startup;
    }
    if let Some(part) = busiest(open(Role::Side), t) {
        return part;
    }
    if t >= last_end {
        return Part::Exit;
    }
    let previous = stays
        .iter()
        .filter(|s| s.role == Role::Main && s.ended <= t)
        .max_by(|a, b| a.ended.total_cmp(&b.ended));
    match previous {
        Some(s) if s.failed => Part::Backoff,
        _ => Part::Between,
    }
}

/// With several requests of one role open, the session is served if any of them is.
fn busiest<'a>(open: impl Iterator<Item = &'a Stay>, t: f64) -> Option<Part> {
    let mut part = None;
    for s in open {
        if t >= s.first_token {
            return Some(Part::Decoding);
        }
        if t >= s.permitted {
            part = Some(Part::Waiting);
        } else if part.is_none() {
            part = Some(Part::Gate);
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::attempt;

    fn parts(start: f64, end: f64, attempts: &[Attempt]) -> [f64; 7] {
        let s = split(Seconds(start), Seconds(end), attempts).unwrap();
        let total = s.total().0;
        assert!(
            (total - (end - start)).abs() < 1e-9,
            "the parts add up to {total}"
        );
        [
            s.startup_s.0,
            s.gate_s.0,
            s.waiting_s.0,
            s.decoding_s.0,
            s.backoff_s.0,
            s.between_s.0,
            s.exit_s.0,
        ]
        .map(|x| (x * 1e6).round() / 1e6)
    }

    #[test]
    fn two_turns_split_into_startup_waiting_decoding_between_and_exit() {
        let turns = [
            attempt(Role::Main, Outcome::Complete, 2.0, Some(3.0), 5.0),
            attempt(Role::Main, Outcome::Complete, 6.0, Some(6.5), 8.0),
        ];
        assert_eq!(parts(1.0, 9.0, &turns), [1.0, 0.0, 1.5, 3.5, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn a_side_request_counts_only_where_no_main_request_is_open() {
        let both = [
            attempt(Role::Side, Outcome::Complete, 1.5, Some(3.0), 6.0),
            attempt(Role::Main, Outcome::Complete, 2.0, Some(3.0), 5.0),
        ];
        assert_eq!(parts(1.0, 7.0, &both), [1.0, 0.0, 1.0, 3.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn time_after_a_failed_attempt_is_backoff() {
        let retry = [
            attempt(Role::Main, Outcome::Overloaded, 1.0, None, 1.5),
            attempt(Role::Main, Outcome::Complete, 4.5, Some(5.0), 6.0),
        ];
        assert_eq!(parts(0.0, 6.0, &retry), [1.0, 0.0, 1.0, 1.0, 3.0, 0.0, 0.0]);
    }

    #[test]
    fn an_answer_without_a_token_is_waiting_to_its_end() {
        let none = [attempt(Role::Main, Outcome::Truncated, 1.0, None, 4.0)];
        assert_eq!(parts(0.0, 5.0, &none), [1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_held_request_counts_as_gate_time() {
        let mut held = attempt(Role::Main, Outcome::Complete, 1.0, Some(5.0), 6.0);
        held.clocks.body_s = Some(Seconds(1.0));
        held.clocks.permit_s = Some(Seconds(4.0));
        assert_eq!(
            parts(0.0, 6.0, &[held]),
            [1.0, 3.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn a_request_whose_client_left_the_line_was_held_to_its_end() {
        let mut held = attempt(Role::Main, Outcome::ClientAborted, 1.0, None, 6.0);
        held.clocks.body_s = Some(Seconds(1.0));
        held.gate = Some(flashrig_record::GateFact {
            let_in: 1,
            in_line: 0,
            overtaken: 0,
        });
        assert_eq!(
            parts(0.0, 6.0, &[held]),
            [1.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn a_request_that_outlives_the_wall_is_cut_at_it() {
        let cut = [attempt(
            Role::Main,
            Outcome::ClientAborted,
            1.0,
            Some(2.0),
            9.0,
        )];
        assert_eq!(parts(0.0, 4.0, &cut), [1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_session_without_a_main_request_has_no_split() {
        assert_eq!(split(Seconds(0.0), Seconds(5.0), &[]), None);
    }

    proptest::proptest! {
        #[test]
        fn the_parts_always_add_up_to_the_wall(
            raw in proptest::collection::vec((0.0..20.0f64, 0.0..5.0f64, 0.0..5.0f64, 0..3u8, 0..3u8), 1..12)
        ) {
            let mut attempts: Vec<Attempt> = raw
                .iter()
                .map(|(at, wait, decode, role, end)| {
                    let role = [Role::Main, Role::Side, Role::Probe][usize::from(*role)];
                    let end = [Outcome::Complete, Outcome::Overloaded, Outcome::Truncated][usize::from(*end)];
                    attempt(role, end, *at, Some(at + wait), at + wait + decode)
                })
                .collect();
            attempts[0].role = Role::Main;
            parts(3.0, 18.0, &attempts);
        }
    }
}
