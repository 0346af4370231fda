//! Short requests beside the sessions: at the moments that hurt, and at a steady rate.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::FitContext;
use crate::plan::grid::Step;
use flashrig_clock::Seconds;
use flashrig_load::{SidePlan, salt, side};
use flashrig_record::{SideSpec, SideTurn};

/// Tokens of a side request's answer: a title, a yes or no.
pub const SIDE_ANSWER_TOKENS: u32 = 32;
/// Name of all side requests in `requests.jsonl`.
pub const SIDE: &str = "side";
/// How long after the first request was sent the first side request follows, in the server's own
/// time: its reading has begun by then, and is far from its end.
const A_MOMENT: Seconds = Seconds(0.5);
/// Side requests come no closer together than this on the wall clock.
const SHORTEST_PERIOD: Duration = Duration::from_micros(100);
/// How often it is looked whether a request is on its way.
const POLL: Duration = Duration::from_millis(1);

/// Side requests of one combination.
#[derive(Debug)]
pub struct Sides<'c> {
    context: &'c FitContext,
    spec: SideSpec,
    step: Step,
    attempt: u64,
}

impl<'c> Sides<'c> {
    /// `None` when none are wanted.
    pub fn new(context: &'c FitContext, step: Step, attempt: u64) -> Option<Self> {
        let spec = context.spec.side?;
        Some(Self {
            context,
            spec,
            step,
            attempt,
        })
    }

    fn plan(&self, number: u64, during_cold: bool) -> SidePlan {
        let spec = &self.context.spec;
        SidePlan {
            id: SIDE.to_owned(),
            prompt_tokens: self.spec.prompt_tokens,
            answer_tokens: SIDE_ANSWER_TOKENS,
            seed: spec.seed,
            salt: salt(&[
                spec.seed,
                self.step.round.into(),
                self.step.context_tokens,
                self.step.sessions.into(),
                self.attempt,
                u64::from(during_cold),
                1_000_000 + number,
            ]),
            during_cold,
        }
    }

    /// While first prompts are read: the first one a moment after the first of them was sent, then
    /// one after the other. `unsent` tells how many first turns are still to be sent. The last side
    /// request is waited for, so that it is over before warm turns begin.
    pub async fn during_cold(&self, unsent: impl Fn() -> u32, into: &mut Vec<SideTurn>) {
        let client = &self.context.client;
        for number in 0..u64::from(self.spec.during_cold) {
            while client.without_token() == 0 {
                if unsent() == 0 {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
            if number == 0 {
                tokio::time::sleep(self.context.on_the_wall(A_MOMENT)).await;
            }
            let plan = self.plan(number, true);
            into.push(side(client, &self.context.calibration, plan).await);
        }
    }

    /// While warm turns run: at the steady rate, whether the ones before were answered or not.
    /// `over` tells when the turns are, and whether they were broken off: then those on their way
    /// are too, and else waited for.
    pub async fn during_warm(&self, over: oneshot::Receiver<Over>, into: &mut Vec<SideTurn>) {
        // A session alone is what others are compared with: it stays alone.
        if self.spec.warm_rate_per_s <= 0.0 || self.step.sessions == 1 {
            return;
        }
        let every = self
            .context
            .on_the_wall(Seconds(1.0 / self.spec.warm_rate_per_s))
            .max(SHORTEST_PERIOD);
        let mut ticks = tokio::time::interval(every);
        let mut tasks = JoinSet::new();
        let mut numbers = 0..;
        tokio::pin!(over);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut over => break ended,
                _ = ticks.tick() => {
                    let Some(number) = numbers.next() else { continue };
                    let (client, calibration) = (self.context.client.clone(), self.context.calibration);
                    let plan = self.plan(number, false);
                    tasks.spawn(async move { side(&client, &calibration, plan).await });
                }
            }
        };
        if !matches!(ended, Ok(Over::Done)) {
            tasks.abort_all();
        }
        while let Some(done) = tasks.join_next().await {
            into.extend(done);
        }
    }
}

/// How warm turns ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// All of them came to their end.
    Done,
    /// They were broken off.
    Broken,
}
