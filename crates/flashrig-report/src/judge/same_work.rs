//! Slowdown for equal work: agents are not deterministic, and a session that took more turns
//! beside another was not slowed down by that.

use flashrig_record::Session;

/// What the work done alone would have taken at the rates seen together, over the wall alone.
///
/// Waiting, gate and back-off go by request, between by request, decoding by output token;
/// start-up and exit are taken as seen together. `None` when a part or a count is unknown, or
/// when a rate would have to be taken from no work.
pub fn same_work(together: &Session, alone: &Session) -> Option<f64> {
    let (t, a) = (together.split?, alone.split?);
    let requests = ratio(alone.requests, together.requests)?;
    let tokens = ratio(alone.output_tokens?, together.output_tokens?)?;
    let wall = alone.wall_s?.0;
    let by_request = t.waiting_s.0 + t.gate_s.0 + t.backoff_s.0 + t.between_s.0;
    let fixed = t.startup_s.0 + t.exit_s.0;
    let predicted = fixed + by_request * requests + t.decoding_s.0 * tokens;
    (wall > 0.0 && a.total().0 > 0.0).then_some(predicted / wall)
}

/// Whether both did the same work: equal requests, output tokens within 5%.
pub fn is_same(together: &Session, alone: &Session) -> Option<bool> {
    let (t, a) = (together.output_tokens?, alone.output_tokens?);
    let close = t.abs_diff(a).saturating_mul(20) <= a.max(t);
    Some(together.requests == alone.requests && close)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_clock::Seconds;
    use flashrig_record::Split;
    use flashrig_record::testing::session;

    fn with(wall: f64, requests: u64, tokens: u64, waiting: f64, decoding: f64) -> Session {
        let mut s = session("a", 0.0, wall);
        s.requests = requests;
        s.output_tokens = Some(tokens);
        s.split = Some(Split {
            startup_s: Seconds(1.0),
            waiting_s: Seconds(waiting),
            decoding_s: Seconds(decoding),
            between_s: Seconds(wall - 1.0 - waiting - decoding),
            ..Split::default()
        });
        s
    }

    #[test]
    fn equal_work_gives_the_plain_slowdown() {
        let value = same_work(&with(15.0, 4, 100, 4.0, 8.0), &with(10.0, 4, 100, 2.0, 5.0));
        assert_eq!(value, Some(1.5));
    }

    #[test]
    fn twice_the_turns_and_tokens_at_equal_rates_is_no_slowdown() {
        let alone = with(10.0, 4, 100, 2.0, 5.0);
        let together = with(19.0, 8, 200, 4.0, 10.0);
        let value = same_work(&together, &alone).unwrap();
        assert!((value - 1.0).abs() < 1e-9, "{value}");
        assert_eq!(is_same(&together, &alone), Some(false));
    }

    #[test]
    fn unknown_tokens_give_no_figure() {
        let mut alone = with(10.0, 4, 100, 2.0, 5.0);
        alone.output_tokens = None;
        assert_eq!(same_work(&with(15.0, 4, 100, 4.0, 8.0), &alone), None);
        assert_eq!(is_same(&with(15.0, 4, 100, 4.0, 8.0), &alone), None);
    }
}
