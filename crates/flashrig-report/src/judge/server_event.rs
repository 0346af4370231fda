//! One failure of the server that hits several sessions at once (case F2): slots that share one
//! budget, or a server that falls over, fail every request in flight. That is one event, not one
//! fault of each session.

use flashrig_clock::Seconds;
use flashrig_record::{Arm, Attempt, Outcome, ServerEvent, Session, SessionFailure, Status};

/// Answers that fail within this time of each other failed at once, in seconds: servers write them
/// one after the other.
const AT_ONCE_S: f64 = 1.0;

/// A generation request of the arm, and whose it is.
struct Stay<'a> {
    session: &'a str,
    attempt: &'a Attempt,
    /// Sent to the server and over, in seconds since the start of the run.
    sent: f64,
    ended: f64,
}

impl Stay<'_> {
    fn failed(&self) -> bool {
        matches!(
            self.attempt.outcome,
            Outcome::UpstreamError | Outcome::ErrorInStream | Outcome::Truncated
        )
    }

    fn is_in_server(&self, at: f64) -> bool {
        self.sent < at && at <= self.ended
    }
}

/// The events of an arm, from the requests of each of its sessions.
pub fn server_events<'a>(
    sessions: impl IntoIterator<Item = (&'a str, &'a [Attempt])>,
) -> Vec<ServerEvent> {
    let mut stays: Vec<Stay<'a>> = sessions
        .into_iter()
        .flat_map(|(session, attempts)| attempts.iter().map(move |a| (session, a)))
        .filter(|(_, attempt)| attempt.dialect.generates())
        .filter_map(|(session, attempt)| {
            Some(Stay {
                session,
                attempt,
                sent: attempt.clocks.sent_s?.0,
                ended: attempt.clocks.end_s.0,
            })
        })
        .collect();
    stays.sort_by(|a, b| a.ended.total_cmp(&b.ended));
    let mut events = Vec::new();
    let mut reported = vec![false; stays.len()];
    for first in 0..stays.len() {
        if reported[first] || !stays[first].failed() {
            continue;
        }
        let at = stays[first].ended;
        // Those that were in the server when the first of them failed.
        // An agent that gives up takes its other requests along.
        let left = |stay: &Stay<'_>| {
            stay.attempt.outcome == Outcome::ClientAborted && stay.ended - at <= AT_ONCE_S
        };
        let here = |index: &usize| {
            *index == first || (stays[*index].is_in_server(at) && !left(&stays[*index]))
        };
        let all: Vec<usize> = (first..stays.len()).filter(here).collect();
        let at_once = |stay: &Stay<'_>| stay.failed() && stay.ended - at <= AT_ONCE_S;
        if all.iter().any(|&index| !at_once(&stays[index])) {
            continue;
        }
        let mut names: Vec<String> = Vec::new();
        for &index in &all {
            let name = stays[index].session;
            if !names.iter().any(|n| n == name) {
                names.push(name.to_owned());
            }
        }
        if names.len() < 2 {
            continue;
        }
        names.sort();
        all.iter().for_each(|&index| reported[index] = true);
        let attempt = stays[first].attempt;
        events.push(ServerEvent {
            at_s: Seconds(at),
            sessions: names,
            requests: u32::try_from(all.len()).unwrap_or(u32::MAX),
            status: attempt.status,
            refusal: attempt.refusal,
            message: attempt.error.as_ref().map(|e| e.message.clone()),
        });
    }
    events
}

/// Whether nothing but events of the server, or its loss, is wrong with a session: either it ended with one, or
/// it got over them and did its work.
pub fn is_explained(arm: &Arm, session: &Session) -> bool {
    let hit: u64 = arm
        .server_events
        .iter()
        .filter(|e| e.sessions.contains(&session.id))
        .map(|e| u64::from(e.requests))
        .sum();
    if arm.server_lost.is_some() && session.status == Status::ServerError {
        return true;
    }
    // A failure of its own beside them is one of its own.
    if hit == 0 || session.refusals + session.lost_streams > hit {
        return false;
    }
    let mut failures = session.failures.iter();
    match session.status {
        // That its work is not done follows.
        Status::ServerError => !failures.any(is_harm),
        // That requests of it were refused or lost is the event's.
        status if status.is_completed() => failures.all(SessionFailure::is_of_the_server),
        _ => false,
    }
}

/// Whether a failure is of the agent's or the rig's own making, whatever the server did.
fn is_harm(failure: &SessionFailure) -> bool {
    matches!(
        failure,
        SessionFailure::PromptsTooLong { .. } | SessionFailure::ProtectedTouched { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::Role;
    use flashrig_record::testing::attempt;

    /// A main request in the server from `sent` to `ended`.
    fn stay(end: Outcome, sent: f64, ended: f64) -> Attempt {
        let mut a = attempt(Role::Main, end, sent, None, ended);
        a.clocks.sent_s = Some(Seconds(sent));
        a.status = Some(if end == Outcome::Complete { 200 } else { 500 });
        a
    }

    fn events(a: &[Attempt], b: &[Attempt]) -> Vec<(Vec<String>, u32)> {
        server_events([("a", a), ("b", b)])
            .into_iter()
            .map(|e| (e.sessions, e.requests))
            .collect()
    }

    fn both(requests: u32) -> Vec<(Vec<String>, u32)> {
        vec![(vec!["a".to_owned(), "b".to_owned()], requests)]
    }

    #[test]
    fn all_requests_in_flight_failing_at_once_are_one_event_of_the_server() {
        let failed = |sent, ended| stay(Outcome::UpstreamError, sent, ended);
        assert_eq!(events(&[failed(0.0, 5.0)], &[failed(1.0, 5.1)]), both(2));
        // A side request of one of them too.
        let mut side = failed(2.0, 5.05);
        side.role = Role::Side;
        assert_eq!(
            events(&[failed(0.0, 5.0), side], &[failed(1.0, 5.1)]),
            both(3)
        );
        // Streams that break are failures as well.
        let broken = stay(Outcome::Truncated, 1.0, 5.1);
        assert_eq!(events(&[failed(0.0, 5.0)], &[broken]), both(2));
    }

    #[test]
    fn a_failure_that_another_request_survives_is_no_event() {
        let survivor = stay(Outcome::Complete, 1.0, 9.0);
        assert!(events(&[stay(Outcome::UpstreamError, 0.0, 5.0)], &[survivor]).is_empty());
    }

    #[test]
    fn a_request_that_its_agent_took_along_on_giving_up_hides_no_event() {
        let failed = |sent, ended| stay(Outcome::UpstreamError, sent, ended);
        let side = stay(Outcome::ClientAborted, 2.0, 5.5);
        assert_eq!(
            events(&[failed(0.0, 5.0), side], &[failed(1.0, 5.1)]),
            both(2)
        );
        let long_after = stay(Outcome::ClientAborted, 2.0, 50.0);
        assert!(events(&[failed(0.0, 5.0), long_after], &[failed(1.0, 5.1)]).is_empty());
    }

    #[test]
    fn failures_one_after_the_other_or_of_one_session_are_no_event() {
        let failed = |sent, ended| stay(Outcome::UpstreamError, sent, ended);
        assert!(events(&[failed(0.0, 5.0)], &[failed(5.1, 5.2)]).is_empty());
        assert!(events(&[failed(0.0, 5.0)], &[failed(1.0, 7.0)]).is_empty());
        assert!(events(&[failed(0.0, 5.0), failed(1.0, 5.0)], &[]).is_empty());
    }

    #[test]
    fn a_retry_that_fails_again_with_the_others_is_an_event_of_its_own() {
        let failed = |sent, ended| stay(Outcome::UpstreamError, sent, ended);
        let a = [failed(0.0, 5.0), failed(6.0, 8.0)];
        let b = [failed(1.0, 5.1), failed(6.1, 8.0)];
        assert_eq!(events(&a, &b).len(), 2);
    }

    #[test]
    fn probes_and_requests_that_never_reached_the_server_are_in_no_event() {
        let mut unsent = stay(Outcome::UpstreamError, 0.0, 5.0);
        unsent.clocks.sent_s = None;
        assert!(events(&[unsent], &[stay(Outcome::UpstreamError, 1.0, 5.0)]).is_empty());
    }
}
