//! A snapshot as Prometheus reads it: text format 0.0.4. Pure.

use std::fmt::Write as _;

use super::histogram::Histogram;
use super::snapshot::{ClientSnapshot, Snapshot};

/// Writes every metric. Names and labels are stable.
pub fn metrics(snapshot: &Snapshot) -> String {
    let mut text = Text::default();
    let clients = &snapshot.clients;
    text.family("flashrig_requests_total", "counter", "Requests that ended.");
    for client in clients {
        for (kind, count) in &client.figures.requests {
            text.sample(
                "",
                &[
                    ("client", &client.name),
                    ("dialect", &kind.dialect),
                    ("role", &kind.role),
                    ("end", &kind.end),
                ],
                *count as f64,
            );
        }
    }
    text.family(
        "flashrig_refusals_total",
        "counter",
        "Requests that the server or the gateway refused or failed, by kind.",
    );
    for client in clients {
        for (kind, count) in &client.figures.refusals {
            let labels = [("client", &*client.name), ("kind", kind)];
            text.sample("", &labels, *count as f64);
        }
    }
    text.each(
        clients,
        ("flashrig_in_flight", "gauge", "Requests in flight."),
        |client| Some(f64::from(client.in_flight)),
    );
    text.each(
        clients,
        (
            "flashrig_waiting",
            "gauge",
            "Requests in flight that have no generated token yet.",
        ),
        |client| Some(f64::from(client.without_token())),
    );
    text.each(
        clients,
        (
            "flashrig_queued",
            "gauge",
            "Requests in flight that are held back by the gateway's own gate.",
        ),
        |client| Some(f64::from(client.queued())),
    );
    tokens(&mut text, clients);
    text.family(
        "flashrig_ttft_seconds",
        "histogram",
        "From a request's arrival to its first generated token of any kind.",
    );
    for client in clients {
        for (role, histogram) in &client.figures.ttft {
            text.histogram(&[("client", &client.name), ("role", role)], histogram);
        }
    }
    text.family(
        "flashrig_itl_seconds",
        "histogram",
        "From one event with generated content to the next of the same answer.",
    );
    for client in clients {
        text.histogram(&[("client", &client.name)], &client.figures.itl);
    }
    text.family(
        "flashrig_gate_wait_seconds",
        "histogram",
        "How long requests were held back by the gateway's own gate.",
    );
    for client in clients {
        text.histogram(&[("client", &client.name)], &client.figures.gate_wait);
    }
    text.family(
        "flashrig_event_loop_lag_seconds",
        "histogram",
        "How late the gateway's own event loop woke: what it may add to the times above.",
    );
    text.histogram(&[], &snapshot.lag);
    if let Some(lost) = snapshot.lost_log_lines {
        text.family(
            "flashrig_log_lines_lost_total",
            "counter",
            "Lines of the log that its disk did not take.",
        );
        text.sample("", &[], lost as f64);
    }
    text.out
}

/// Tokens that no server told have no sample: unknown is not 0.
fn tokens(text: &mut Text, clients: &[ClientSnapshot]) {
    let known = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64);
    text.each(
        clients,
        (
            "flashrig_input_tokens_total",
            "counter",
            "Prompt tokens, cached ones included, as far as the server told them.",
        ),
        |client| known(client.figures.input_tokens),
    );
    text.each(
        clients,
        (
            "flashrig_cached_tokens_total",
            "counter",
            "Prompt tokens that came from the server's cache, as far as it told them.",
        ),
        |client| known(client.figures.cached_tokens),
    );
    text.each(
        clients,
        (
            "flashrig_input_tokens_with_cached_total",
            "counter",
            "Prompt tokens of the answers that told the cached ones: what a cached share is of.",
        ),
        |client| {
            let figures = &client.figures;
            known(
                figures
                    .cached_tokens
                    .map(|_| figures.input_tokens_with_cached),
            )
        },
    );
    text.each(
        clients,
        (
            "flashrig_output_tokens_total",
            "counter",
            "Generated tokens, reasoning included, as far as the server told them.",
        ),
        |client| known(client.figures.output_tokens),
    );
    text.each(
        clients,
        (
            "flashrig_answers_without_usage_total",
            "counter",
            "Whole answers in which the server did not tell its tokens.",
        ),
        |client| known(Some(client.figures.answers_without_usage)),
    );
}

/// The text format, written family by family.
#[derive(Default)]
struct Text {
    out: String,
    name: &'static str,
}

impl Text {
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A family with one sample for each client that has a figure.
    fn each(
        &mut self,
        clients: &[ClientSnapshot],
        (name, kind, help): (&'static str, &str, &str),
        figure: impl Fn(&ClientSnapshot) -> Option<f64>,
    ) {
        self.family(name, kind, help);
        for client in clients {
            if let Some(figure) = figure(client) {
                self.sample("", &[("client", &client.name)], figure);
            }
        }
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.out, "{}{suffix}", self.name);
        for (index, (name, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{before}{name}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{after} {value}");
    }

    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        for (end, count) in histogram.cumulative() {
            let end = if end.is_finite() {
                end.to_string()
            } else {
                "+Inf".to_owned()
            };
            let with_end: Vec<_> = labels.iter().copied().chain([("le", &*end)]).collect();
            self.sample("_bucket", &with_end, count as f64);
        }
        self.sample("_sum", labels, histogram.sum());
        self.sample("_count", labels, histogram.count() as f64);
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_from_servers_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
