//! A snapshot, and a request, as people read them. Pure.

use super::client_stats::{is_refusal, refusal_kind, word};
use super::stats::{ClientSnapshot, FinishedRequest, Snapshot};
use flashrig_record::{Outcome, Role};

const HEAD: [&str; 9] = [
    "client", "active", "waiting", "TTFT", "median", "tok/s", "requests", "refused", "cached",
];

/// The table's lines: a head, and one for each client. `active` are requests in flight, `waiting`
/// those of them without a generated token yet, `TTFT` is the latest answer's and its median.
pub fn table(snapshot: &Snapshot) -> Vec<String> {
    let head = HEAD.map(str::to_owned);
    let rows: Vec<[String; 9]> = std::iter::once(head)
        .chain(snapshot.clients.iter().map(row))
        .collect();
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ")
        })
        .collect()
}

fn row(client: &ClientSnapshot) -> [String; 9] {
    let figures = &client.figures;
    [
        client.name.to_string(),
        client.in_flight.to_string(),
        client.waiting.to_string(),
        seconds(figures.last_ttft_s),
        seconds(figures.median_ttft_s()),
        or_dash(figures.tokens_per_s(), |rate| format!("{rate:.1}")),
        figures.ended().to_string(),
        figures.refused().to_string(),
        or_dash(figures.cached_share(), |share| {
            format!("{:.0}%", share * 100.0)
        }),
    ]
}

/// A line for a request that ended; `None` for a probe that went well.
pub fn finished_line(received: &FinishedRequest) -> Option<String> {
    let attempt = &received.attempt;
    if attempt.role == Role::Probe && attempt.outcome == Outcome::Complete {
        return None;
    }
    let clocks = &attempt.clocks;
    let status = or_dash(attempt.status, |status| status.to_string());
    let mut line = format!(
        "{}  {} {} {}  {status} {}  {}",
        received.client,
        word(&attempt.role),
        attempt.method,
        attempt.path,
        word(&attempt.outcome).replace('_', " "),
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

fn seconds(seconds: Option<f64>) -> String {
    or_dash(seconds, |seconds| match seconds {
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    })
}

fn or_dash<T>(value: Option<T>, message: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), message)
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::ClientStats;
    use super::super::client_stats::tests::answered;
    use super::super::histogram::{Histogram, LAG};
    use super::*;
    use crate::GatewayEvent;
    use flashrig_record::{ErrorDetail, RefusalKind};

    #[test]
    fn the_table_has_a_line_for_each_client_in_columns_and_unknown_is_a_dash() {
        let mut busy = ClientStats::default();
        busy.handle(&GatewayEvent::Finished(Box::new(answered())));
        let client = |name: &str, in_flight, client_stats: ClientStats| ClientSnapshot {
            name: name.into(),
            in_flight,
            waiting: 1,
            figures: client_stats.figures,
        };
        let snapshot = Snapshot {
            clients: vec![
                client("anna", 2, busy),
                client("bert-with-a-name", 0, ClientStats::default()),
            ],
            lag: Histogram::new(LAG),
        };
        assert_eq!(
            table(&snapshot),
            [
                "client            active  waiting    TTFT  median  tok/s  requests  refused  cached",
                "anna                   2        1  1.00 s  1.00 s   10.0         1        0     40%",
                "bert-with-a-name       0        1       –       –      –         0        0       –",
            ]
        );
    }

    #[test]
    fn a_request_is_told_on_one_line_whatever_the_server_said() {
        let mut attempt = answered();
        let reported = |attempt: &flashrig_record::Attempt| {
            finished_line(&FinishedRequest {
                client: "anna".into(),
                attempt: Box::new(attempt.clone()),
            })
        };
        assert_eq!(
            reported(&attempt).unwrap(),
            "anna  main POST /v1/messages  200 complete  3.50 s, TTFT 1.00 s, 100 in (40 cached), 21 out"
        );
        attempt.outcome = Outcome::Refused;
        attempt.refusal = Some(RefusalKind::ContextTooSmall);
        attempt.error = Some(ErrorDetail {
            message: "too\nlong\u{1b}[2J".to_owned(),
            ..ErrorDetail::default()
        });
        let line = reported(&attempt).unwrap();
        assert!(
            line.ends_with(", context too small: too long [2J"),
            "{line}"
        );
        let mut probe = answered();
        probe.role = Role::Probe;
        assert_eq!(reported(&probe), None);
    }
}
