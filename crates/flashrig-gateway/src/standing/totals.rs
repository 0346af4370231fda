//! What all requests added up to, as people read it when the gateway ends. Pure.

use super::client_stats::ClientFigures;
use super::grid::{lines, or_dash, percent, seconds};
use super::snapshot::{ClientSnapshot, Snapshot};

const HEAD: [&str; 8] = [
    "client",
    "requests",
    "refused",
    "tokens in",
    "cached",
    "out",
    "TTFT",
    "tok/s",
];

/// A head, a line for each client, and one for all of them when there are several; then what is not
/// in these figures. Tokens are those that the server reported; `TTFT` is the median over the latest
/// answers, and `tok/s` is of them.
pub fn totals(snapshot: &Snapshot) -> Vec<String> {
    let clients: Vec<&ClientSnapshot> = (snapshot.clients.iter())
        .filter(|client| client.figures.ended() > 0)
        .collect();
    if clients.is_empty() {
        return vec!["no requests".to_owned()];
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(clients.iter().map(|one| row(&one.name, &one.figures)));
    if clients.len() > 1 {
        rows.push(sums(&clients));
    }
    let mut shown = lines(&rows);
    let without: u64 = (clients.iter())
        .map(|one| one.figures.answers_without_usage)
        .sum();
    if without > 0 {
        shown.push(format!(
            "whole answers without token counts from the server: {without}"
        ));
    }
    if let Some(lost @ 1..) = snapshot.lost_log_lines {
        shown.push(format!("log lines that could not be written: {lost}"));
    }
    shown
}

fn row(name: &str, figures: &ClientFigures) -> [String; 8] {
    [
        name.to_owned(),
        figures.ended().to_string(),
        figures.refused().to_string(),
        count(figures.input_tokens),
        percent(figures.cached_share()),
        count(figures.output_tokens),
        seconds(figures.median_ttft_s()),
        or_dash(figures.tokens_per_s(), |rate| format!("{rate:.1}")),
    ]
}

/// All clients. A median of medians would be no median, and a sum of rates no rate.
fn sums(clients: &[&ClientSnapshot]) -> [String; 8] {
    let figures = || clients.iter().map(|client| &client.figures);
    let all = |known: fn(&ClientFigures) -> Option<u64>| {
        figures().filter_map(known).reduce(|sum, one| sum + one)
    };
    let cached = all(|figures| figures.cached_tokens);
    let of: u64 = figures().map(|one| one.input_tokens_with_cached).sum();
    #[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let share = cached
        .filter(|_| of > 0)
        .map(|cached| cached as f64 / of as f64);
    [
        "all".to_owned(),
        figures().map(ClientFigures::ended).sum::<u64>().to_string(),
        figures()
            .map(ClientFigures::refused)
            .sum::<u64>()
            .to_string(),
        count(all(|figures| figures.input_tokens)),
        percent(share),
        count(all(|figures| figures.output_tokens)),
        String::new(),
        String::new(),
    ]
}

fn count(tokens: Option<u64>) -> String {
    or_dash(tokens, |tokens| tokens.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::ClientStats;
    use super::super::client_stats::tests::answered;
    use super::super::histogram::{Histogram, LAG};
    use super::*;
    use crate::GatewayEvent;

    fn client(name: &str, with_usage: bool) -> ClientSnapshot {
        let mut attempt = answered();
        if !with_usage {
            (attempt.input_tokens, attempt.output_tokens) = (None, None);
            attempt.cached_tokens = None;
        }
        let mut stats = ClientStats::default();
        stats.handle(&GatewayEvent::Finished(Box::new(attempt)));
        ClientSnapshot {
            name: name.into(),
            in_flight: 0,
            requests: Vec::new(),
            figures: stats.figures,
        }
    }

    fn snapshot(clients: Vec<ClientSnapshot>, lost: u64) -> Snapshot {
        Snapshot {
            clients,
            lag: Histogram::new(LAG),
            lost_log_lines: Some(lost),
        }
    }

    #[test]
    fn totals_have_a_line_for_each_client_and_all_of_them_and_say_what_is_missing() {
        let clients = vec![client("anna", true), client("bert", false)];
        assert_eq!(
            totals(&snapshot(clients, 7)),
            [
                "client  requests  refused  tokens in  cached  out    TTFT  tok/s",
                "anna           1        0        100     40%   21  1.00 s   10.0",
                "bert           1        0          –       –    –  1.00 s      –",
                "all            2        0        100     40%   21               ",
                "whole answers without token counts from the server: 1",
                "log lines that could not be written: 7",
            ]
        );
    }

    #[test]
    fn without_requests_there_are_no_totals() {
        assert_eq!(totals(&snapshot(Vec::new(), 0)), ["no requests"]);
    }
}
