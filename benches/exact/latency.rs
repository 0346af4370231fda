//! 64 streams at 50 events a second: what each way adds to the first byte and to every event, and how
//! far the gateway's own rows are from the server's stamps.
//!
//! The ways take turns, so that the machine's noise falls on all alike.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use flashrig_record::{Attempt, Outcome};

use super::client::{Load, Seen};
use super::figures::{Values, us, verdict};
use super::{Process, run, start_gateway, start_server};

const LOAD: Load = Load {
    streams: 64,
    interval: Duration::from_millis(20),
    events: 50,
    lasting: Duration::from_secs(5),
    ramp: Duration::from_secs(1),
    with_long_requests: true,
};
const TURNS: usize = 3;
const WAYS: [&str; 4] = ["direct", "nginx", "nginx, new connections", "gateway"];
const GATEWAY: usize = 3;
const STEPS: [(&str, &str); 5] = [
    ("client asks", "gateway has read the head"),
    ("head read", "connected to the server"),
    ("connected", "server has read the request"),
    ("server sends the first event", "gateway has read it"),
    ("gateway has read it", "client has it"),
];
const MEDIAN_US: f64 = 150.0;
const P99_US: f64 = 1000.0;

/// What one turn of one way showed, in microseconds.
struct Turn {
    first_byte: Values,
    first_byte_long: Values,
    event: Values,
}

pub fn measure() {
    let server = start_server();
    let gateway = start_gateway(&server);
    // The gateway keeps a connection for a second; nginx is measured keeping and not keeping them.
    let nginx = Process::nginx(server.addr, true);
    let dialling = Process::nginx(server.addr, false);
    let ways: [Option<SocketAddr>; 4] = [
        Some(server.addr),
        nginx.as_ref().map(|n| n.addr),
        dialling.as_ref().map(|n| n.addr),
        Some(gateway.addr),
    ];
    let mut turns: [Vec<Turn>; 4] = Default::default();
    let mut through = Vec::new();
    let mut machine = Vec::new();
    let mut lost = [0; 4];
    for turn in 0..TURNS {
        for way in 0..ways.len() {
            let Some(to) = ways[way] else { continue };
            let mut seen = run(to, LOAD);
            lost[way] += seen.iter().filter(|s| !s.whole).count();
            seen.retain(|s| s.whole);
            turns[way].push(Turn::of(&seen));
            if way == 0 {
                machine.extend(seen.iter().flat_map(gap_errors));
            }
            if way == GATEWAY {
                through.push((turn, seen));
            }
        }
    }
    let origin = gateway.origin;
    let rows: Vec<Attempt> = gateway
        .finish()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();

    println!(
        "\n## 64 streams at 50 events a second, {TURNS} turns of {:?} each way, µs\n",
        LOAD.lasting
    );
    println!(
        "| | way | median | p99 | added: median | of turns | p99 | of turns | n | ≤ 150 at the median | ≤ 1000 at p99 |"
    );
    println!("|---|---|---:|---:|---:|---|---:|---|---:|---|---|");
    table("first byte, request of 2 KB", &turns, |turn| {
        &turn.first_byte
    });
    table("first byte, request of 60 KB", &turns, |turn| {
        &turn.first_byte_long
    });
    table("each event", &turns, |turn| &turn.event);
    for (way, lost) in WAYS.iter().zip(lost) {
        if lost > 0 {
            println!("\n{way}: {lost} streams lost");
        }
    }
    truth(&rows, origin, &through, machine);
}

impl Turn {
    fn of(seen: &[Seen]) -> Self {
        // On the way to the server and back, without what the server itself took.
        let first = |s: &Seen| us(s.first_byte, s.asked) - us(s.events[0].0, s.read);
        let by_length = |long| {
            let those = seen.iter().filter(|s| s.long_request == long);
            Values::new(those.map(first).collect())
        };
        let events = seen.iter().flat_map(|s| s.events.iter().skip(1));
        Self {
            first_byte: by_length(false),
            first_byte_long: by_length(true),
            event: Values::new(events.map(|&(sent, got)| us(got, sent)).collect()),
        }
    }
}

fn table(what: &str, turns: &[Vec<Turn>; 4], pick: impl Fn(&Turn) -> &Values) {
    let direct = Values::pooled(turns[0].iter().map(&pick));
    for (way, turns_of_way) in WAYS.iter().zip(turns) {
        if turns_of_way.is_empty() {
            println!("| {what} | {way} | not installed |");
            continue;
        }
        let all = Values::pooled(turns_of_way.iter().map(&pick));
        let (p50, p99) = (all.quantile(0.5), all.quantile(0.99));
        if *way == "direct" {
            println!(
                "| {what} | {way} | {p50:.0} | {p99:.0} | | | | | {} | | |",
                all.len()
            );
            continue;
        }
        let added = |share| all.quantile(share) - direct.quantile(share);
        let spread = |share| {
            let by_turn = turns_of_way.iter().zip(&turns[0]);
            let added = by_turn
                .map(|(way, direct)| pick(way).quantile(share) - pick(direct).quantile(share));
            let added = Values::new(added.collect());
            format!("{:.0} to {:.0}", added.quantile(0.0), added.quantile(1.0))
        };
        println!(
            "| {what} | {way} | {p50:.0} | {p99:.0} | {:.0} | {} | {:.0} | {} | {} | {} | {} |",
            added(0.5),
            spread(0.5),
            added(0.99),
            spread(0.99),
            all.len(),
            verdict(added(0.5), MEDIAN_US),
            if direct.quantile(0.99) > P99_US {
                "not judged: direct is above it"
            } else {
                verdict(added(0.99), P99_US)
            },
        );
    }
}

/// How far the gaps between events are from the server's, as the client itself read them: what the
/// machine does to anybody's clocks.
fn gap_errors(seen: &Seen) -> impl Iterator<Item = f64> {
    let pairs = seen.events.windows(2);
    pairs.map(|pair| (us(pair[1].1, pair[0].1) - us(pair[1].0, pair[0].0)).abs())
}

/// The gateway's rows against the server's stamps, which came to the clients inside the events.
fn truth(rows: &[Attempt], origin: u64, through: &[(usize, Vec<Seen>)], machine: Vec<f64>) {
    // Names repeat from turn to turn; the request's instant tells which is meant.
    let mut by_name: HashMap<&str, Vec<&Attempt>> = HashMap::new();
    for row in rows {
        by_name
            .entry(row.model.as_deref().unwrap_or_default())
            .or_default()
            .push(row);
    }
    let (mut first, mut between, mut arrival) = (Vec::new(), Vec::new(), Vec::new());
    let mut steps: [Vec<f64>; 5] = Default::default();
    let mut unmatched = 0;
    for seen in through.iter().flat_map(|(_, seen)| seen) {
        let candidates = by_name.get(seen.name.as_str()).into_iter().flatten();
        let asked = us(seen.asked, origin);
        let row = candidates
            .filter(|row| row.outcome == Outcome::Complete)
            .min_by(|a, b| {
                let distance = |row: &Attempt| (row.clocks.head_s.0 * 1e6 - asked).abs();
                distance(a).total_cmp(&distance(b))
            });
        let Some((row, sent_s, token_s)) =
            row.and_then(|row| Some((row, row.clocks.sent_s?, row.clocks.first_token_s?)))
        else {
            unmatched += 1;
            continue;
        };
        if row.event_gaps_us.len() + 1 != seen.events.len() {
            unmatched += 1;
            continue;
        }
        if !seen.long_request {
            let at = |seconds: f64| seconds * 1e6;
            let connected = at(row.clocks.connected_s.map_or(f64::NAN, |s| s.0));
            let instants = [
                asked,
                at(row.clocks.head_s.0),
                connected,
                us(seen.read, origin),
                us(seen.events[0].0, origin),
                at(token_s.0),
                us(seen.first_byte, origin),
            ];
            // Between the request's arrival and the first event is the server's own time.
            for (step, from) in steps.iter_mut().zip([0, 1, 2, 4, 5]) {
                step.push(instants[from + 1] - instants[from]);
            }
        }
        let reported = us(seen.events[0].0, seen.read);
        first.push(((token_s.0 - sent_s.0) * 1e6 - reported).abs());
        arrival.push(token_s.0 * 1e6 - us(seen.events[0].0, origin));
        for (gap, pair) in row.event_gaps_us.iter().zip(seen.events.windows(2)) {
            between.push((f64::from(*gap) - us(pair[1].0, pair[0].0)).abs());
        }
    }
    println!("\n## The gateway's rows against the server's stamps, µs\n");
    println!("| error of | median | p99 | largest | n | ≤ 1000 at p99 |");
    println!("|---|---:|---:|---:|---:|---|");
    for (what, values, judged) in [
        ("time to first token", first, true),
        ("inter-token latency", between, true),
        ("the first token's instant itself", arrival, false),
        (
            "inter-token latency, as a direct client reads it",
            machine,
            false,
        ),
    ] {
        let values = Values::new(values);
        let p99 = values.quantile(0.99);
        println!(
            "| {what} | {:.0} | {p99:.0} | {:.0} | {} | {} |",
            values.quantile(0.5),
            values.quantile(1.0),
            values.len(),
            if judged { verdict(p99, P99_US) } else { "" }
        );
    }
    println!("\n## The way of a first byte through the gateway, request of 2 KB, µs\n");
    println!("| from | to | median | p99 |");
    println!("|---|---|---:|---:|");
    for (step, values) in STEPS.iter().zip(steps) {
        let values = Values::new(values);
        let (p50, p99) = (values.quantile(0.5), values.quantile(0.99));
        println!("| {} | {} | {p50:.0} | {p99:.0} |", step.0, step.1);
    }
    if unmatched > 0 {
        println!("\n{unmatched} streams have no row with all their events");
    }
}
