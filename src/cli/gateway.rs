//! `flashrig gateway`: the standing gateway for people's everyday agents.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;
use tokio::time::interval;

use super::args::{GateOrderArg, GatewayArgs};
use super::console::Console;
use super::exit::{Exit, Failure, OrFail, usage};
use super::signals;
use crate::run::Stop;
use flashrig_clock::Origin;
use flashrig_gateway::standing::{
    FinishedRequest, LogWriter, METRICS_PATH, StandingStats, finished_line, table, totals,
};
use flashrig_gateway::{ClientName, EventLoop, Gate, Limits, Standing, StandingConfig};
use flashrig_http::{KeyStyle, Secret, Upstream};

/// How often the table is brought up to date.
const REFRESH: Duration = Duration::from_millis(500);

/// Runs the command.
pub async fn gateway(args: GatewayArgs, console: Console) -> Result<Exit, Failure> {
    let tokens = tokens(&args.clients)?;
    check_reach(args.listen, &tokens)?;
    let upstream = Upstream::new(&args.upstream, key(&args)?, KeyStyle::ByDialect).or_usage()?;
    let origin = Origin::now();
    let (say, messages) = mpsc::unbounded_channel();
    let log = match &args.log {
        Some(path) => {
            // Weak, because the log outlives whoever shows what it says.
            let say = say.downgrade();
            let report = move |message: String| match say.upgrade() {
                Some(say) => drop(say.send(message)),
                None => tracing::warn!("{message}"),
            };
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
    let saying = say.clone();
    let report = move |_: &str| {
        let _ = saying.send(format!(
            "stopping: no new requests; those in flight have {} s to end; press Ctrl-C again to stop at once",
            limit.as_secs_f64()
        ));
    };
    let watching = tokio::spawn(signals::watch(report, stopper));
    print_address(&args, address, console)?;
    let showing = tokio::spawn(show(console, Arc::clone(&stats), finished, messages));
    stop.wait().await;
    if tokio::time::timeout(limit, standing.drain()).await.is_err() {
        let left: u32 = stats.snapshot().clients.iter().map(|c| c.in_flight).sum();
        let requests = if left == 1 { "request" } else { "requests" };
        let _ = say.send(format!(
            "cutting off {left} {requests} that did not end in time"
        ));
    }
    standing.close().await;
    let closing = Arc::clone(&stats);
    let _ = tokio::task::spawn_blocking(move || closing.close_log()).await;
    watching.abort();
    // With the task above, the last sender but this one is gone.
    let _ = watching.await;
    drop(say);
    let _ = showing.await;
    for line in totals(&stats.snapshot()) {
        console.note(&line);
    }
    Ok(Exit::Yes)
}

/// Says where it listens: the one line on standard output.
fn print_address(args: &GatewayArgs, address: SocketAddr, console: Console) -> Result<(), Failure> {
    if console.json() {
        return console
            .json_line(&serde_json::json!({
                "gateway": format!("http://{address}"),
                "metrics": format!("http://{address}{METRICS_PATH}"),
                "upstream": args.upstream,
                "answer_probes": args.answer_probes,
                "model": args.model,
            }))
            .or_rig();
    }
    console.result(&format!(
        "gateway on http://{address}, to {}; metrics on http://{address}{METRICS_PATH}; Ctrl-C drains \
         and ends it",
        args.upstream
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

fn key(args: &GatewayArgs) -> Result<Option<Secret>, Failure> {
    let Some(name) = &args.key_env else {
        return Ok(None);
    };
    match std::env::var(name) {
        Ok(key) if !key.is_empty() => Ok(Some(Secret::new(key))),
        _ => Err(Failure {
            exit: Exit::Rig,
            error: anyhow!("the environment variable {name} for the server's key is not set"),
        }),
    }
}

/// Shows what goes on until nobody sends messages any more.
async fn show(
    console: Console,
    stats: Arc<StandingStats>,
    mut finished: mpsc::Receiver<FinishedRequest>,
    mut messages: mpsc::UnboundedReceiver<String>,
) {
    let live = console.shows_progress() && std::io::stderr().is_terminal();
    let lines = MultiProgress::with_draw_target(if live {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    let mut shown: Vec<ProgressBar> = Vec::new();
    let mut refresh = interval(REFRESH);
    loop {
        tokio::select! {
            biased;
            Some(finished) = finished.recv() => {
                // On a terminal the table shows it.
                if !live && let Some(line) = finished_line(&finished) {
                    console.note(&line);
                }
            }
            message = messages.recv() => match message {
                None => break,
                Some(message) if live => drop(lines.println(message)),
                Some(message) => console.note(&message),
            },
            _ = refresh.tick(), if live => draw(&lines, &mut shown, &table(&stats.snapshot())),
        }
    }
    // The totals take its place.
    let _ = lines.clear();
}

/// Shows the table's lines in place of those before.
fn draw(lines: &MultiProgress, shown: &mut Vec<ProgressBar>, table: &[String]) {
    // Room for the terminal's own `^C`, which would otherwise wrap and shift the lines.
    let width = usize::from(console::Term::stderr().size().1).saturating_sub(3);
    for bar in shown.drain(table.len().min(shown.len())..) {
        bar.finish_and_clear();
        lines.remove(&bar);
    }
    for (index, text) in table.iter().enumerate() {
        if index == shown.len() {
            let style = ProgressStyle::with_template("{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            shown.push(lines.add(ProgressBar::new_spinner().with_style(style)));
        }
        if let Some(line) = shown.get(index) {
            line.set_message(console::truncate_str(text, width, "…").into_owned());
            line.tick();
        }
    }
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
