//! The driver of `ttft`: so many requests at once, one number after the other, round by round.
//!
//! A server that stops answering ends the run; what was measured stays. Nothing is judged here.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::rounds::own_cpu;
use super::{Bus, RunError, Stop};
use crate::clock::Seconds;
use crate::config::in_words;
use crate::judge::ttft::{rows, verdict};
use crate::load::{Client, Meter, Prepared, SessionAttempt, SessionPlan, salt};
use crate::records::{
    Calibration, CellStop, ClientHonesty, End, Lane, LeftOut, LoadRun, LoadSpec, LoadWhat,
    Measured, RunState, ServerTold, StopKind, Turn,
};
use crate::server::{Connected, Pulse, pulse, wait_idle};

/// The longest wait for the server to be idle, on the wall clock.
const IDLE_LIMIT: Duration = Duration::from_secs(600);
/// Name of the one long prompt among the short ones.
pub use crate::judge::ttft::LONG;

/// Everything that a run needs, prepared.
#[derive(Debug)]
pub struct TtftContext {
    /// The server.
    pub server: Connected,
    /// The client.
    pub client: Client,
    /// How prompts are brought to their size.
    pub calibration: Calibration,
    /// What was asked for: `contexts` has one entry, the tokens of a prompt.
    pub spec: LoadSpec,
    /// Whether the server runs in this process.
    pub embedded: bool,
    /// Where everything is told.
    pub bus: Bus<LoadRun>,
    /// The wish to stop.
    pub stop: Stop,
}

/// Measures and seals the record, however it ends.
///
/// # Errors
/// The results folder cannot be written.
pub async fn execute(context: &TtftContext, record: LoadRun) -> Result<LoadRun, RunError> {
    context.bus.fact(LoadWhat::RunStarted {
        run: Box::new(record),
    })?;
    let (state, stopped_because) = match measure_all(context).await {
        _ if context.stop.is_set() => (
            RunState::Interrupted,
            Some("stopped by the user".to_owned()),
        ),
        Ok(None) => (RunState::Finished, None),
        Ok(Some(words)) => (RunState::Failed, Some(words)),
        Err(error) => (RunState::Failed, Some(in_words(&error))),
    };
    let run = context.bus.with(|store| store.run().cloned());
    let run = run.ok_or(RunError::Nothing)?;
    let ttft = rows(&run);
    let verdict = verdict(&run, &ttft, stopped_because.as_deref());
    context.bus.fact(LoadWhat::RunFinished {
        state,
        stopped_because,
        rig_cpu_s: own_cpu(),
        cells: Vec::new(),
        ttft,
        verdict: Some(Box::new(verdict)),
    })?;
    let run = context.bus.with(|store| store.run().cloned());
    run.ok_or(RunError::Nothing)
}

/// Measures round by round; the words are those of a server that has stopped answering.
async fn measure_all(context: &TtftContext) -> anyhow::Result<Option<String>> {
    let spec = &context.spec;
    let mut served = Served::default();
    let steps = (1..=spec.rounds).flat_map(|round| spec.sessions.iter().map(move |n| (round, *n)));
    let mut ended: Option<String> = None;
    for (round, agents) in steps {
        if context.stop.is_set() {
            return Ok(None);
        }
        if let Some(words) = &ended {
            context.bus.fact(LoadWhat::CellLeftOut {
                left_out: left_out(context, round, agents, words),
            })?;
            continue;
        }
        let (measured, rows) = measure(context, round, agents, &mut served).await?;
        let stop = measured.stopped.clone();
        keep(context, measured, &rows)?;
        ended = stop
            .filter(|stop| stop.kind != StopKind::Interrupted)
            .map(|stop| stop.words);
    }
    Ok(ended)
}

fn left_out(context: &TtftContext, round: u32, agents: u32, words: &str) -> LeftOut {
    LeftOut {
        round: Some(round),
        context_tokens: prompt_tokens(&context.spec),
        sessions: agents,
        reason: format!("not tried any more: {words}"),
    }
}

fn prompt_tokens(spec: &LoadSpec) -> u64 {
    spec.contexts.first().copied().unwrap_or(0)
}

/// The requests first: a step whose event is there has all its rows.
fn keep(context: &TtftContext, measured: Measured, rows: &[SessionAttempt]) -> anyhow::Result<()> {
    let arm = format!("{}x{}", measured.context_tokens, measured.sessions);
    for row in rows {
        let attempt = std::slice::from_ref(&row.attempt);
        context
            .bus
            .requests(measured.round, &arm, &row.session, attempt)?;
    }
    context.bus.fact(LoadWhat::CellMeasured {
        measured: Box::new(measured),
    })?;
    Ok(())
}

/// What the server did for requests so far.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    sent: u32,
    generated: u32,
}

/// So many requests at once.
async fn measure(
    context: &TtftContext,
    round: u32,
    agents: u32,
    served: &mut Served,
) -> anyhow::Result<(Measured, Vec<SessionAttempt>)> {
    let speed = context.client.aim().speed;
    context.bus.fact(LoadWhat::CellStarted {
        round,
        context_tokens: prompt_tokens(&context.spec),
        sessions: agents,
    })?;
    let mut measured = Measured {
        round,
        context_tokens: prompt_tokens(&context.spec),
        sessions: agents,
        idle_wait_s: None,
        start_skew_s: None,
        warm_span_s: None,
        lanes: Vec::new(),
        side: Vec::new(),
        client: ClientHonesty::default(),
        told: ServerTold::default(),
        stopped: None,
    };
    let idle = wait_idle(&context.server, IDLE_LIMIT);
    let Some(waited) = context.stop.unless(idle).await else {
        measured.stopped = Some(interrupted());
        return Ok((measured, Vec::new()));
    };
    measured.idle_wait_s = Some(Seconds(waited?.as_secs_f64() * speed));
    let requests = prepare(context, round, agents).await?;
    context.client.connect(requests.len()).await;
    let meter = Meter::start(&context.client, context.embedded).context("the client's meter")?;
    let volley = context.stop.unless(volley(&context.client, requests)).await;
    measured.client = meter.finish();
    let rows = context.client.take_rows();
    let Some(lanes) = volley else {
        measured.stopped = Some(interrupted());
        return Ok((measured, rows));
    };
    measured.lanes = lanes?;
    measured.start_skew_s = skew(&measured.lanes, speed);
    served.note(&measured.lanes);
    measured.stopped = stopped(context, &measured.lanes, *served).await;
    Ok((measured, rows))
}

/// Builds all prompts before any clock starts. Prompts of one step begin alike when they are to;
/// those of two steps never do.
async fn prepare(
    context: &TtftContext,
    round: u32,
    agents: u32,
) -> anyhow::Result<Vec<(String, Prepared)>> {
    let spec = context.spec.clone();
    let (client, calibration) = (context.client.clone(), context.calibration);
    // Megabytes of text: not on a thread that reads sockets.
    let preparing = tokio::task::spawn_blocking(move || {
        let step = salt(&[spec.seed, round.into(), agents.into()]);
        let long = spec.long_tokens.filter(|_| agents > 1);
        (1..=agents)
            .map(|number| {
                let long = long.filter(|_| number == 1);
                let id = long.map_or_else(|| format!("a{number}"), |_| LONG.to_owned());
                let tokens = long.unwrap_or_else(|| prompt_tokens(&spec));
                let plan = SessionPlan {
                    id: id.clone(),
                    context_tokens: tokens + u64::from(spec.answer_tokens),
                    checks: 0,
                    answer_tokens: spec.answer_tokens,
                    seed: step,
                    salt: salt(&[step, number.into()]),
                    shared_prefix: spec.shared_prefix,
                };
                Ok((id, Prepared::new(&client, &calibration, plan)?))
            })
            .collect::<anyhow::Result<Vec<_>>>()
    });
    preparing.await?
}

/// Sends all requests at once and waits for all of them.
async fn volley(client: &Client, requests: Vec<(String, Prepared)>) -> anyhow::Result<Vec<Lane>> {
    let start = Arc::new(Barrier::new(requests.len()));
    let mut tasks = JoinSet::new();
    for (index, (id, mut request)) in requests.into_iter().enumerate() {
        let (client, start) = (client.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            let turns = vec![request.cold(&client).await];
            (index, Lane { id, turns })
        });
    }
    let mut lanes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        lanes.push(done.context("a request of flashrig itself failed")?);
    }
    lanes.sort_by_key(|(index, _)| *index);
    Ok(lanes.into_iter().map(|(_, lane)| lane).collect())
}

fn interrupted() -> CellStop {
    CellStop {
        kind: StopKind::Interrupted,
        words: "stopped by the user".to_owned(),
    }
}

fn turns(lanes: &[Lane]) -> impl Iterator<Item = &Turn> {
    lanes.iter().flat_map(|lane| &lane.turns)
}

fn skew(lanes: &[Lane], speed: f64) -> Option<Seconds> {
    let sent = || turns(lanes).map(|turn| turn.sent_at_s.0);
    let (first, last) = (sent().reduce(f64::min)?, sent().reduce(f64::max)?);
    Some(Seconds((last - first) * speed))
}

impl Served {
    fn note(&mut self, lanes: &[Lane]) {
        let reached = turns(lanes).filter(|turn| turn.end != End::Unreachable);
        self.sent += u32::try_from(reached.count()).unwrap_or(u32::MAX);
        let generated = turns(lanes).filter(|turn| turn.ttft_s.is_some());
        self.generated += u32::try_from(generated.count()).unwrap_or(u32::MAX);
    }
}

/// Whether the server has stopped answering: somebody waited in vain, or nobody is there.
async fn stopped(context: &TtftContext, lanes: &[Lane], served: Served) -> Option<CellStop> {
    let all = |end| turns(lanes).all(|turn: &Turn| turn.end == end);
    if all(End::Unreachable) {
        let words = turns(lanes).find_map(|turn| turn.error.as_ref().map(|e| e.message.clone()));
        return Some(CellStop {
            kind: StopKind::Failed,
            words: format!(
                "the server is gone: {}",
                words.unwrap_or_else(|| "nobody answers there".to_owned())
            ),
        });
    }
    let stalled = turns(lanes).filter(|turn| turn.end == End::Stalled).count();
    if stalled == 0 {
        return None;
    }
    let pulse = pulse(&context.server).await;
    Some(CellStop {
        kind: StopKind::Stalled,
        words: stall_words(served, stalled, context.spec.first_token_limit_s, &pulse),
    })
}

/// What a stalled server is called, and what to do.
fn stall_words(served: Served, stalled: usize, limit: Seconds, pulse: &Pulse) -> String {
    let Served { sent, generated } = served;
    let limit = limit.0;
    let first = match generated {
        0 => format!("the server accepted {sent} requests and generated for none"),
        k if usize::try_from(sent - k).unwrap_or(0) < stalled => format!(
            "the server accepted {sent} requests and began to answer {k}, then fell silent in \
             {stalled} of its answers"
        ),
        k => format!("the server accepted {sent} requests, generated for {k}, then for none"),
    };
    let life = if !pulse.is_there {
        "it is gone now; look into its log and start it again".to_owned()
    } else {
        let check = match (pulse.health, pulse.models) {
            (Some(status @ 200..=299), _) => format!("its health check says {status}"),
            (_, Some(status @ 200..=299)) => format!("its model list still answers {status}"),
            (Some(status), _) => format!("its health check says {status}"),
            (None, _) => "its health check gives no answer".to_owned(),
        };
        match pulse.requests {
            Some(n) if n > 0.0 => format!(
                "{check}, and its metrics tell of {n} requests in work; if it is only slow, give a \
                 longer --first-token-limit, else start it again"
            ),
            Some(_) => format!(
                "{check}, and by its metrics it works on nothing: it lost the requests; start it \
                 again"
            ),
            None => format!("{check}; look into its log and start it again"),
        }
    };
    format!("{first}: {stalled} waited {limit} s in vain; {life}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Pulse = Pulse {
        is_there: true,
        health: Some(200),
        models: Some(200),
        requests: None,
    };

    fn words(sent: u32, generated: u32, stalled: usize, pulse: &Pulse) -> String {
        let served = Served { sent, generated };
        stall_words(served, stalled, Seconds(600.0), pulse)
    }

    #[test]
    fn a_server_that_lives_and_generates_no_more_is_named_as_one() {
        let words = words(15, 6, 9, &ALIVE);
        let start = "the server accepted 15 requests, generated for 6, then for none: 9 waited 600 s \
                     in vain; its health check says 200";
        assert!(words.starts_with(start), "{words}");
    }

    #[test]
    fn a_server_that_lost_requests_is_told_from_one_that_may_be_slow() {
        let idle = Pulse {
            requests: Some(0.0),
            ..ALIVE
        };
        assert!(words(8, 6, 2, &idle).contains("it lost the requests"));
        let busy = Pulse {
            requests: Some(2.0),
            ..ALIVE
        };
        assert!(words(8, 6, 2, &busy).contains("longer --first-token-limit"));
    }

    #[test]
    fn a_server_that_is_gone_is_said_to_be() {
        let gone = words(3, 0, 3, &Pulse::default());
        assert!(
            gone.contains("generated for none") && gone.contains("it is gone now"),
            "{gone}"
        );
    }

    #[test]
    fn silence_in_the_middle_of_answers_is_not_called_silence_before_them() {
        assert!(words(4, 4, 2, &ALIVE).contains("fell silent in 2 of its answers"));
    }
}
