//! A snapshot as people read it while the gateway runs. Pure.

use super::client_stats::{LiveRequest, LiveState, name_of};
use super::grid::{lines, or_dash, percent, seconds};
use super::snapshot::{ClientSnapshot, Snapshot};

/// Requests in flight that are shown, over all clients.
const MOST_REQUESTS: usize = 16;

const HEAD: [&str; 10] = [
    "client", "active", "queue", "waiting", "TTFT", "median", "tok/s", "done", "refused", "cached",
];

/// The table's lines: a head, one for each client, and one for each of its requests in flight.
///
/// `active` are requests in flight; of these, `queue` are held at the gate and `waiting` are in the
/// server without a token. `TTFT` is that of the answer that last began. `median` and `tok/s` are
/// of the latest answers that ended.
pub fn table(snapshot: &Snapshot) -> Vec<String> {
    let clients = &snapshot.clients;
    let head = HEAD.map(str::to_owned);
    let rows: Vec<[String; 10]> = std::iter::once(head)
        .chain(clients.iter().map(row))
        .collect();
    let mut grid = lines(&rows).into_iter();
    let mut shown: Vec<String> = grid.next().into_iter().collect();
    let mut left = MOST_REQUESTS;
    for (line, client) in grid.zip(clients) {
        shown.push(line);
        let requests = &client.requests;
        shown.extend(requests.iter().take(left).map(request));
        if requests.len() > left {
            shown.push(format!("  and {} more in flight", requests.len() - left));
        }
        left = left.saturating_sub(requests.len());
    }
    shown
}

fn row(client: &ClientSnapshot) -> [String; 10] {
    let figures = &client.figures;
    let queued = client.queued();
    [
        client.name.to_string(),
        client.in_flight.to_string(),
        queued.to_string(),
        client.without_token().saturating_sub(queued).to_string(),
        seconds(figures.last_ttft_s),
        seconds(figures.median_ttft_s()),
        or_dash(figures.tokens_per_s(), |rate| format!("{rate:.1}")),
        figures.ended().to_string(),
        figures.refused().to_string(),
        percent(figures.cached_share()),
    ]
}

fn request(request: &LiveRequest) -> String {
    let state = match request.state {
        LiveState::Queued(s) => format!("in the queue for {}", seconds(Some(s))),
        LiveState::Waiting(s) => format!("no token after {}", seconds(Some(s))),
        LiveState::Generating {
            ttft_s,
            events_per_s,
        } => {
            let rate = events_per_s.map(|rate| format!(", {rate:.1} events/s"));
            let ttft = seconds(Some(ttft_s));
            format!("TTFT {ttft}{}", rate.unwrap_or_default())
        }
    };
    format!("  #{} {}: {state}", request.number, name_of(&request.role))
}

#[cfg(test)]
mod tests {
    use super::super::client_stats::ClientStats;
    use super::super::client_stats::tests::answered;
    use super::super::histogram::{Histogram, LAG};
    use super::*;
    use crate::GatewayEvent;
    use flashrig_record::Role;

    fn client(name: &str, requests: Vec<LiveRequest>, stats: ClientStats) -> ClientSnapshot {
        ClientSnapshot {
            name: name.into(),
            in_flight: requests.len() as u32,
            requests,
            figures: stats.figures,
        }
    }

    fn shown(clients: Vec<ClientSnapshot>) -> Vec<String> {
        table(&Snapshot {
            clients,
            lag: Histogram::new(LAG),
            lost_log_lines: None,
        })
    }

    #[test]
    fn the_table_has_a_line_for_each_client_and_each_request_in_flight_and_unknown_is_a_dash() {
        let mut busy = ClientStats::default();
        busy.handle(&GatewayEvent::Finished(Box::new(answered())));
        busy.figures.last_ttft_s = Some(0.41);
        let states = [
            LiveState::Generating {
                ttft_s: 0.41,
                events_per_s: Some(38.04),
            },
            LiveState::Waiting(3.2),
            LiveState::Queued(12.0),
        ];
        let requests = states.iter().zip(12..).map(|(state, number)| LiveRequest {
            number,
            role: Role::Main,
            state: *state,
        });
        let busy = client("anna", requests.collect(), busy);
        let idle = client("bert-with-a-name", Vec::new(), ClientStats::default());
        assert_eq!(
            shown(vec![busy, idle]),
            [
                "client            active  queue  waiting    TTFT  median  tok/s  done  refused  cached",
                "anna                   3      1        1  0.41 s  1.00 s   10.0     1        0     40%",
                "  #12 main: TTFT 0.41 s, 38.0 events/s",
                "  #13 main: no token after 3.20 s",
                "  #14 main: in the queue for 12.0 s",
                "bert-with-a-name       0      0        0       –       –      –     0        0       –",
            ]
        );
    }

    #[test]
    fn however_many_requests_are_in_flight_the_table_stays_short() {
        let requests = (1..=40).map(|number| LiveRequest {
            number,
            role: Role::Main,
            state: LiveState::Waiting(1.0),
        });
        let one = client("anna", requests.collect(), ClientStats::default());
        let lines = shown(vec![one]);
        assert_eq!(lines.len(), 2 + MOST_REQUESTS + 1);
        assert_eq!(lines.last().unwrap(), "  and 24 more in flight");
    }
}
