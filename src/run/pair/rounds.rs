//! All rounds of a run, from prepared surroundings to the sealed record.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::arm;
use super::context::Context;
use crate::plan::arm_order;
use crate::run::shared::RunError;
use crate::run::shared::instrument::own_cpu;
use crate::run::shared::server_life::{self, Lost, bring_back, is_lost, report_lost};
use crate::run::shared::warm_up::warm_up;
use flashrig_record::{Arm, ArmKind, CachePolicy, InvalidReason, Run, What};
use flashrig_report::judge::{foreign_load, is_settled, round_validity, verdict};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// The sealed record.
    pub run: Run,
}

/// Runs every round and seals the record. A failure of the rig ends the run early and is
/// recorded as its reason.
///
/// # Errors
/// The record itself cannot be written.
pub async fn execute(context: &Context, record: Run) -> Result<Done, RunError> {
    context.bus.fact(What::RunStarted {
        run: Box::new(record),
    })?;
    let failure = rounds(context).await.err();
    let (state, stopped_because) = context.stop.ending(failure.as_ref());
    let judged = context.bus.with(|store| {
        store
            .run()
            .filter(|r| !r.rounds.is_empty())
            .map(|r| verdict(r, state))
    });
    context.bus.fact(What::RunFinished {
        state,
        stopped_because,
        rig_cpu_s: own_cpu(),
        verdict: judged.map(Box::new),
    })?;
    let run = context
        .bus
        .with(|store| store.run().cloned())
        .ok_or(RunError::Nothing)?;
    Ok(Done { run })
}

async fn rounds(context: &Context) -> anyhow::Result<()> {
    fill_cache(context).await?;
    let planned = &context.plan.rounds;
    let began = Instant::now();
    for round in 1..=planned.most {
        if round > 1 && planned.is_over(began.elapsed()) {
            return Ok(());
        }
        let kinds = arm_order(round, context.plan.arms());
        let Some((arms, lost)) = arms(context, round, &kinds).await? else {
            return Ok(());
        };
        let mut invalid_reasons = round_validity(&arms, context.plan.sessions.len(), &kinds);
        if !context.plan.foreign_load_accepted {
            invalid_reasons.extend(foreign_load(&arms));
        }
        let is_cut = arms.len() < kinds.len() && arms.iter().all(|a| a.server_lost.is_none());
        if let Some(lost) = lost.as_ref().filter(|_| is_cut) {
            let loss = lost.loss();
            invalid_reasons.push(InvalidReason::ServerLost { loss }.into());
        }
        context.bus.fact(What::RoundFinished {
            round,
            valid: invalid_reasons.is_empty(),
            invalid_reasons,
        })?;
        let is_last = round == planned.most || (planned.looks_after(round) && settled(context));
        let Some(lost) = lost else {
            if is_last {
                return Ok(());
            }
            continue;
        };
        if is_last && context.server.life.may_restart() {
            return Ok(());
        }
        if !bring_back(&context.server, &context.bus, &context.stop, &lost).await? {
            return Ok(());
        }
        warm_up_again(context).await?;
        fill_cache(context).await?;
    }
    Ok(())
}

/// Whether the rounds so far settle the time verdict.
fn settled(context: &Context) -> bool {
    context
        .bus
        .with(|store| store.run().is_some_and(is_settled))
}

/// The arms of a round, up to the one in which the server was lost; `None` when the wish to stop
/// came first.
async fn arms(
    context: &Context,
    round: u32,
    kinds: &[ArmKind],
) -> anyhow::Result<Option<(Vec<Arm>, Option<Lost>)>> {
    let mut arms = Vec::new();
    for &kind in kinds {
        if context.stop.is_set() {
            return Ok(None);
        }
        let Some(reset) = reset(context).await? else {
            return Ok(None);
        };
        let (arm, lost) = arm::run(context, round, kind, reset).await?;
        arms.push(arm);
        if context.stop.is_set() {
            continue;
        }
        if lost.is_some() {
            return Ok(Some((arms, lost)));
        }
        let between = is_lost(&context.server).await;
        if let Some(lost) = &between {
            report_lost(&context.bus, lost)?;
            // The last arm of a round is whole; the next round needs the server.
            if arms.len() < kinds.len() || round < context.plan.rounds.most {
                return Ok(Some((arms, between)));
            }
        }
    }
    Ok((!context.stop.is_set()).then_some((arms, None)))
}

/// Brings the server back to a known state, where that is wanted, and tells how long it took; `None`
/// when the wish to stop came first.
async fn reset(context: &Context) -> anyhow::Result<Option<Option<Duration>>> {
    if !context.plan.reset {
        return Ok(Some(None));
    }
    let (server, bus, stop) = (&context.server, &context.bus, &context.stop);
    let Some(took) = server_life::reset(server, bus, stop).await? else {
        return Ok(None);
    };
    warm_up_again(context).await?;
    Ok((!stop.is_set()).then_some(Some(took)))
}

/// With the cache to be warm, every session runs once, unscored.
async fn fill_cache(context: &Context) -> anyhow::Result<()> {
    if context.plan.cache != CachePolicy::Warm || context.stop.is_set() {
        return Ok(());
    }
    context.bus.note("warming up: every session once, unscored");
    let (warm, _) = arm::run(context, 0, ArmKind::BackToBack, None).await?;
    if let Some(message) = &warm.server_lost {
        bail!("in the warm-up {message}; start it again and run this again");
    }
    if let Some(s) = warm.sessions.iter().find(|s| !s.status.is_completed()) {
        bail!("the warm-up of {} did not complete: {}", s.id, s.detail);
    }
    Ok(())
}

/// One unscored request of each shape, after the server was started anew.
async fn warm_up_again(context: &Context) -> anyhow::Result<()> {
    let limit = context.plan.first_token_limit;
    let warming = warm_up(&context.server, &context.dialects, limit, |message| {
        context.bus.note(message);
    });
    context.stop.unless(warming).await.transpose()?;
    Ok(())
}
