//! A finished request as people read it. Pure.

use super::client_stats::{is_refusal, name_of, refusal_kind};
use super::grid::{or_dash, seconds};
use super::snapshot::FinishedRequest;
use flashrig_record::{Outcome, Role};

/// A line for a request that ended; `None` for a probe that went well.
pub fn finished_line(finished: &FinishedRequest) -> Option<String> {
    let attempt = &finished.attempt;
    if attempt.role == Role::Probe && attempt.outcome == Outcome::Complete {
        return None;
    }
    let clocks = &attempt.clocks;
    let status = or_dash(attempt.status, |status| status.to_string());
    let mut line = format!(
        "{}  {} {} {}  {status} {}  {}",
        finished.client,
        name_of(&attempt.role),
        attempt.method,
        attempt.path,
        name_of(&attempt.outcome).replace('_', " "),
        seconds(Some(clocks.end_s.0 - clocks.head_s.0)),
    );
    if let Some(first) = clocks.first_token_s {
        line += &format!(", TTFT {}", seconds(Some(first.0 - clocks.head_s.0)));
    }
    if let Some(input) = attempt.input_tokens {
        line += &format!(", {input} in");
        if let Some(cached) = attempt.cached_tokens {
            line += &format!(" ({cached} cached)");
        }
    }
    if let Some(output) = attempt.output_tokens {
        line += &format!(", {output} out");
    }
    if is_refusal(attempt.outcome) {
        line += &format!(", {}", refusal_kind(attempt).replace('_', " "));
    }
    if let (true, Some(error)) = (is_refusal(attempt.outcome), &attempt.error) {
        let one_line: String = error
            .message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(200)
            .collect();
        line += &format!(": {one_line}");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::tests::answered;
    use super::*;
    use flashrig_record::{Attempt, ErrorDetail, RefusalKind};

    #[test]
    fn a_request_is_shown_on_one_line_whatever_the_server_said() {
        let mut attempt = answered();
        let line = |attempt: &Attempt| {
            finished_line(&FinishedRequest {
                client: "anna".into(),
                attempt: Box::new(attempt.clone()),
            })
        };
        assert_eq!(
            line(&attempt).unwrap(),
            "anna  main POST /v1/messages  200 complete  3.50 s, TTFT 1.00 s, 100 in (40 cached), 21 out"
        );
        attempt.outcome = Outcome::Refused;
        attempt.refusal = Some(RefusalKind::ContextTooSmall);
        attempt.error = Some(ErrorDetail {
            message: "too\nlong\u{1b}[2J".to_owned(),
            ..ErrorDetail::default()
        });
        let refused = line(&attempt).unwrap();
        assert!(
            refused.ends_with(", context too small: too long [2J"),
            "{refused}"
        );
        let mut probe = answered();
        probe.role = Role::Probe;
        assert_eq!(line(&probe), None);
    }
}
