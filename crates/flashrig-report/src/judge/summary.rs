//! A session's traffic in figures.

use flashrig_record::{Attempt, Outcome, Redirected, Role};

/// What the requests of a session add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Main requests.
    pub requests: u64,
    /// Requests of sub-agents.
    pub sub_agent_requests: u64,
    /// Side requests.
    pub side_requests: u64,
    /// Probes.
    pub probe_requests: u64,
    /// Those of them that flashrig's gateway answered itself.
    pub answered_by_gateway: u64,
    /// Main and side requests answered with an error.
    pub refusals: u64,
    /// Main and side requests whose answer broke off.
    pub lost_streams: u64,
    /// Main and side requests whose body had been sent before.
    pub repeats: u64,
    /// Those of them whose first was still in flight.
    pub repeats_open: u64,
    /// Requests that flashrig's own gateway turned away; in none of the counts above.
    pub rejected: u64,
    /// Those of them whose prompt was above the limit.
    pub long_prompts: u64,
    /// Main and side requests that the server redirected, of those refused.
    pub redirected: Option<Redirected>,
    /// Main and side requests that were not marked for a cold cache.
    pub unmarked: u64,
    /// Prompt tokens of the first main request that the server says came from its cache.
    pub first_cached_tokens: Option<u64>,
    /// Prompt tokens, cached included.
    pub input_tokens: Option<u64>,
    /// Cached prompt tokens.
    pub cached_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
}

/// Adds up the requests of a session.
///
/// A token sum is known only if every answer that began told its part.
pub fn traffic(attempts: &[Attempt]) -> Traffic {
    let mut sum = Traffic::default();
    for a in attempts {
        if a.outcome == Outcome::RejectedByGateway {
            sum.rejected += 1;
            sum.long_prompts += u64::from(a.is_long_prompt());
            continue;
        }
        match a.role {
            Role::Main => sum.requests += 1,
            Role::SubAgent => sum.sub_agent_requests += 1,
            Role::Side => sum.side_requests += 1,
            Role::Probe => sum.probe_requests += 1,
        }
        if a.role == Role::Probe {
            sum.answered_by_gateway += u64::from(a.answered_by_gateway.is_some());
            continue;
        }
        if let Some(message) = a.redirect() {
            let all = sum.redirected.get_or_insert_with(|| Redirected {
                requests: 0,
                message: message.to_owned(),
            });
            all.requests += 1;
        }
        match a.outcome {
            Outcome::Refused
            | Outcome::Overloaded
            | Outcome::UpstreamError
            | Outcome::Unreachable => sum.refusals += 1,
            Outcome::Truncated | Outcome::Stalled | Outcome::ErrorInStream => sum.lost_streams += 1,
            Outcome::Complete | Outcome::ClientAborted | Outcome::RejectedByGateway => {}
        }
        sum.repeats += u64::from(a.repeats.is_some());
        sum.repeats_open += u64::from(a.repeats_open);
        sum.unmarked += u64::from(!a.body_changed);
    }
    let answers: Vec<&Attempt> = attempts
        .iter()
        .filter(|a| a.role != Role::Probe && a.status.is_some_and(|s| s < 300))
        .collect();
    sum.first_cached_tokens = answers
        .iter()
        .find(|a| a.role == Role::Main)
        .and_then(|a| a.cached_tokens);
    sum.input_tokens = total(&answers, |a| a.input_tokens);
    sum.cached_tokens = total(&answers, |a| a.cached_tokens);
    sum.output_tokens = total(&answers, |a| a.output_tokens);
    sum
}

fn total(answers: &[&Attempt], of: impl Fn(&Attempt) -> Option<u64>) -> Option<u64> {
    if answers.is_empty() {
        return None;
    }
    answers.iter().map(|a| of(a)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::attempt;

    #[test]
    fn tokens_left_unknown_by_one_answer_make_the_sum_unknown_and_never_zero() {
        let mut a = attempt(Role::Main, Outcome::Complete, 0.0, Some(1.0), 2.0);
        let b = attempt(Role::Side, Outcome::Complete, 0.0, Some(1.0), 2.0);
        assert_eq!(traffic(&[a.clone(), b.clone()]).output_tokens, Some(20));
        a.output_tokens = None;
        assert_eq!(traffic(&[a, b]).output_tokens, None);
        assert_eq!(traffic(&[]).output_tokens, None);
    }

    #[test]
    fn an_answer_that_the_client_left_makes_the_sum_unknown() {
        let mut left = attempt(Role::Main, Outcome::ClientAborted, 0.0, Some(1.0), 2.0);
        left.output_tokens = None;
        let whole = attempt(Role::Main, Outcome::Complete, 3.0, Some(4.0), 5.0);
        assert_eq!(traffic(&[left, whole]).output_tokens, None);
    }

    #[test]
    fn a_request_that_the_gateway_turned_away_is_no_request_to_the_server() {
        let sum = traffic(&[attempt(
            Role::Main,
            Outcome::RejectedByGateway,
            0.0,
            None,
            0.1,
        )]);
        assert_eq!((sum.requests, sum.rejected, sum.refusals), (0, 1, 0));
    }

    #[test]
    fn refusals_and_lost_streams_are_counted_apart_and_probes_in_neither() {
        let sum = traffic(&[
            attempt(Role::Main, Outcome::Overloaded, 0.0, None, 1.0),
            attempt(Role::Side, Outcome::Truncated, 0.0, Some(0.5), 1.0),
            attempt(Role::Probe, Outcome::Refused, 0.0, None, 1.0),
        ]);
        assert_eq!(
            (sum.refusals, sum.lost_streams, sum.probe_requests),
            (1, 1, 1)
        );
    }
}
