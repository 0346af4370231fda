//! `flashrig gateway`: the standing gateway for people's everyday agents.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::sync::{mpsc, oneshot};
use tokio::time::interval;

use super::args::{DoorArgs, GateOrderArg};
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::signals;
use crate::run::Stop;
use flashrig_clock::Origin;
use flashrig_config::{format_duration, plural};
use flashrig_gateway::standing::{
    FinishedRequest, LogWriter, METRICS_PATH, StandingStats, finished_line, table, totals,
};
use flashrig_gateway::{ClientName, EventLoop, Gate, Limits, Standing, StandingConfig};
use flashrig_http::{KeyStyle, Secret, Upstream};

/// How often the table is brought up to date.
const REFRESH: Duration = Duration::from_millis(500);

/// `flashrig gateway`.
#[derive(Clone, Debug, Args)]
pub struct GatewayArgs {
    /// The server's address
    #[arg(long, value_name = "URL")]
    pub upstream: String,
    /// Address to listen on; beyond loopback every client needs a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub listen: std::net::SocketAddr,
    /// A client and its token, which it sends as its API key; give it once per client. With none,
    /// clients are named by their base address: http://ADDRESS:PORT/client/NAME
    #[arg(long = "client", value_name = "NAME=TOKEN")]
    pub clients: Vec<String>,
    #[command(flatten)]
    pub door: DoorArgs,
    /// Append a JSON line for every request to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Admit at most N concurrent generation requests, over all clients [default: no limit]
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 100_000), help_heading = "Gate")]
    pub max_in_flight: Option<u32>,
    /// Which waiting request the gate admits next [default: fifo]
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        requires = "max_in_flight",
        help_heading = "Gate"
    )]
    pub order: Option<GateOrderArg>,
    /// Refuse longer prompts in the client's own dialect, e.g. 32k; tokens are estimated from the
    /// request's bytes
    #[arg(long, value_name = "TOKENS", value_parser = flashrig_config::parse_count, help_heading = "Gate")]
    pub max_prompt: Option<u64>,
    /// Answer health checks, model lists and token counts in the server's place. For servers
    /// without these routes; token counts are estimates
    #[arg(long, requires = "model", help_heading = "Probes")]
    pub answer_probes: bool,
    /// The model that --answer-probes puts on its list
    #[arg(
        long,
        value_name = "NAME",
        requires = "answer_probes",
        help_heading = "Probes"
    )]
    pub model: Option<String>,
    /// How long requests in flight may go on after the first Ctrl-C
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = flashrig_config::parse_duration)]
    pub drain: std::time::Duration,
}

/// Runs the command.
pub async fn gateway(args: GatewayArgs, console: Console) -> Result<Exit, Failure> {
    let tokens = tokens(&args.clients)?;
    check_reach(args.listen, &tokens)?;
    let door = args.door.spec().read().or_usage()?;
    let upstream = Upstream::new(&args.upstream, door, KeyStyle::ByDialect).or_usage()?;
    let server = upstream.url();
    let origin = Origin::now();
    let log = match &args.log {
        Some(path) => {
            let report = move |message: String| console.note(&message);
            Some(LogWriter::open(path, origin.clone(), report).or_rig()?)
        }
        None => None,
    };
    let (stats, finished) = StandingStats::new(log);
    let config = StandingConfig {
        listen: args.listen,
        tokens,
        upstream,
        limits: Limits {
            prompt_tokens: args.max_prompt,
            ..Limits::standing()
        },
        gate: args.max_in_flight.and_then(NonZeroU32::new).map(|limit| {
            let order = args.order.map(GateOrderArg::order).unwrap_or_default();
            Gate::new(limit, order)
        }),
        answer_probes: args.model.clone().filter(|_| args.answer_probes),
        origin,
    };
    let event_loop = EventLoop::start().or_rig()?;
    let mut standing = event_loop
        .run(Standing::open(config, stats.clone()))
        .await
        .with_context(|| {
            format!(
                "cannot listen on {}; is something else there? choose another address with --listen",
                args.listen
            )
        })
        .or_rig()?;
    // Weak, so that the stats, and with it the log, is closed when this function ends.
    let lagging = Arc::downgrade(&stats);
    let _lag = event_loop
        .lag(move |seconds| {
            if let Some(stats) = lagging.upgrade() {
                stats.record_lag(seconds);
            }
        })
        .or_rig()?;
    let address = standing.addr();
    let (stopper, mut stop) = Stop::new();
    let limit = args.drain;
    let message = format!(
        "stopping: no new requests; those in flight have {} to end; press Ctrl-C again to stop at once",
        format_duration(limit)
    );
    let watching = tokio::spawn(signals::watch(console, message, stopper));
    print_address(&args, &server, address, console)?;
    let (end, ended) = oneshot::channel::<()>();
    let showing = tokio::spawn(show(console, Arc::clone(&stats), finished, ended));
    stop.wait().await;
    if tokio::time::timeout(limit, standing.drain()).await.is_err() {
        let left: u32 = stats.snapshot().clients.iter().map(|c| c.in_flight).sum();
        console.note(&format!(
            "cutting off {} that did not end in time",
            plural(left, "request")
        ));
    }
    standing.close().await;
    let closing = Arc::clone(&stats);
    let _ = tokio::task::spawn_blocking(move || closing.close_log()).await;
    watching.abort();
    drop(end);
    let _ = showing.await;
    for line in totals(&stats.snapshot()) {
        console.note(&line);
    }
    Ok(Exit::Yes)
}

/// Says where it listens: the one line on standard output.
fn print_address(
    args: &GatewayArgs,
    server: &str,
    address: SocketAddr,
    console: Console,
) -> Result<(), Failure> {
    if console.json() {
        return console
            .json_line(&serde_json::json!({
                "gateway": format!("http://{address}"),
                "metrics": format!("http://{address}{METRICS_PATH}"),
                "upstream": server,
                "answer_probes": args.answer_probes,
                "model": args.model,
            }))
            .or_rig();
    }
    console.result(&format!(
        "gateway on http://{address}, to {server}; metrics on http://{address}{METRICS_PATH}; Ctrl-C \
         drains and ends it",
    ));
    Ok(())
}

/// Reads `NAME=TOKEN`. What is not one is not repeated: it may hold a token.
fn tokens(typed: &[String]) -> Result<Vec<(ClientName, Secret)>, Failure> {
    let mut tokens: Vec<(ClientName, Secret)> = Vec::with_capacity(typed.len());
    for (index, one) in typed.iter().enumerate() {
        let (name, token) = one
            .split_once('=')
            .ok_or_else(|| usage(format!("--client number {} is not NAME=TOKEN", index + 1)))?;
        let name = ClientName::new(name).or_usage()?;
        let message = name.as_str();
        if token.is_empty() {
            return Err(usage(format!(
                "--client {message}: the token is empty; give it one that cannot be guessed"
            )));
        }
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(usage(format!(
                "--client {message}: the token holds characters that an HTTP header cannot carry; use \
                 letters, digits and punctuation"
            )));
        }
        for (other, secret) in &tokens {
            if *other == name {
                return Err(usage(format!(
                    "--client {message} is given twice; leave one out"
                )));
            }
            if secret.expose() == token {
                return Err(usage(format!(
                    "--client {message} and --client {} have the same token, so they could not be told \
                     apart; give each its own",
                    other.as_str()
                )));
            }
        }
        tokens.push((name, Secret::new(token)));
    }
    Ok(tokens)
}

/// Whoever reaches the gateway uses the server, with the server's key: beyond this machine only
/// those with a token may.
fn check_reach(listen: SocketAddr, tokens: &[(ClientName, Secret)]) -> Result<(), Failure> {
    if listen.ip().is_loopback() || !tokens.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "--listen {listen} can be reached from other machines, and nobody has a token; give each client \
         one with --client NAME=TOKEN, or listen on 127.0.0.1"
    )))
}

/// Shows what goes on until `ended` is.
async fn show(
    console: Console,
    stats: Arc<StandingStats>,
    mut finished: mpsc::Receiver<FinishedRequest>,
    mut ended: oneshot::Receiver<()>,
) {
    let mut refresh = interval(REFRESH);
    loop {
        tokio::select! {
            biased;
            Some(finished) = finished.recv() => {
                // On a terminal the table shows it.
                if !console.draws() && let Some(line) = finished_line(&finished) {
                    console.note(&line);
                }
            }
            _ = &mut ended => break,
            _ = refresh.tick() => console.draw(&table(&stats.snapshot())),
        }
    }
    // The totals take its place.
    console.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<impl Sized, Failure>) -> String {
        let failure = result.err().unwrap();
        assert_eq!(failure.exit, Exit::Usage);
        failure.error.to_string()
    }

    fn typed(clients: &[&str]) -> Result<Vec<(ClientName, Secret)>, Failure> {
        let clients: Vec<String> = clients.iter().map(|&c| c.to_owned()).collect();
        tokens(&clients)
    }

    #[test]
    fn clients_that_could_not_be_told_apart_are_refused_without_repeating_a_token() {
        for (bad, word) in [
            (&["hunter2"][..], "not NAME=TOKEN"),
            (&["anna="], "empty"),
            (&["an na=hunter2"], "cannot name a client"),
            (&["anna=hunter 2"], "characters"),
            (&["anna=hunter2", "anna=x"], "given twice"),
            (&["anna=hunter2", "bert=hunter2"], "the same token"),
        ] {
            let said = message(typed(bad));
            assert!(said.contains(word) && !said.contains("hunter"), "{said}");
        }
        assert_eq!(typed(&["anna=a=b", "bert=c"]).ok().unwrap().len(), 2);
    }

    #[test]
    fn only_loopback_may_be_listened_on_without_tokens() {
        for open in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
            assert!(check_reach(open.parse().unwrap(), &[]).is_ok(), "{open}");
        }
        for wide in ["0.0.0.0:1", "[::]:1", "192.168.0.1:1"] {
            let said = message(check_reach(wide.parse().unwrap(), &[]));
            assert!(said.contains("--client NAME=TOKEN"), "{said}");
            let tokens = typed(&["anna=t"]).ok().unwrap();
            assert!(check_reach(wide.parse().unwrap(), &tokens).is_ok());
        }
    }
}
