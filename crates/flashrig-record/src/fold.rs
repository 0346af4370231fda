//! From events to the record: the one way in which `run.json` comes about, for a run that
//! finished and for one that was killed.

use super::{Arm, ArmKind, Event, InvalidReason, Round, Run, Session, What};

/// Applies one event to the record. `None` before the first `run_started`.
pub fn apply(run: &mut Option<Run>, event: Event) {
    let Some(record) = run else {
        if let What::RunStarted { run: started } = event.what {
            *run = Some(*started);
        }
        return;
    };
    match event.what {
        What::RunStarted { run: started } => *record = *started,
        What::ArmStarted { round, arm } => {
            arm_of(record, round, arm);
        }
        What::SessionStarted { .. } => {}
        What::SessionEnded {
            round,
            arm,
            session,
        }
        | What::SessionVerified {
            round,
            arm,
            session,
        } => {
            if let Some(arm) = arm_of(record, round, arm) {
                put_session(arm, *session);
            }
        }
        What::ArmFinished { round, arm } => {
            if let Some(slot) = arm_of(record, round, arm.kind) {
                *slot = *arm;
            }
        }
        What::ServerLife { life } => record.server.life.push(*life),
        What::RoundFinished {
            round,
            valid,
            invalid_reasons,
        } => {
            if let Some(slot) = record.rounds.iter_mut().find(|r| r.index == round) {
                slot.valid = valid;
                slot.invalid_reasons = invalid_reasons;
            }
        }
        What::RunFinished {
            state,
            stopped_because,
            rig_cpu_s,
            verdict,
        } => {
            record.state = state;
            record.stopped_because = stopped_because;
            record.rig.cpu_s = rig_cpu_s;
            record.verdict = verdict.map(|v| *v);
        }
    }
}

/// The arm's place in the record, made when it is new. Round 0, the warm-up, has none.
fn arm_of(run: &mut Run, round: u32, kind: ArmKind) -> Option<&mut Arm> {
    if round == 0 {
        return None;
    }
    let index = match run.rounds.iter().position(|r| r.index == round) {
        Some(index) => index,
        None => {
            run.rounds.push(Round {
                index: round,
                valid: false,
                invalid_reasons: vec![InvalidReason::RoundUnfinished.into()],
                arms: Vec::new(),
            });
            run.rounds.len() - 1
        }
    };
    let arms = &mut run.rounds[index].arms;
    let index = match arms.iter().position(|a| a.kind == kind) {
        Some(index) => index,
        None => {
            arms.push(Arm::unmeasured(kind));
            arms.len() - 1
        }
    };
    Some(&mut arms[index])
}

fn put_session(arm: &mut Arm, session: Session) {
    match arm.sessions.iter_mut().find(|s| s.id == session.id) {
        Some(slot) => *slot = session,
        None => arm.sessions.push(session),
    }
}
