//! What a reader should know before trusting the figures.

use super::egress::egress;
use super::life::restarts;
use super::models;
use flashrig_record::{
    Arm, ArmKind, CachePolicy, MissingField, OddAnswers, Place, Placed, Run, Session,
    SessionSlowdown, TreeProof, Warning, group,
};

/// Cached shares of two arms further apart than this are flagged (case I2).
pub(super) const CACHED_SHARE_TOLERANCE: f64 = 0.05;
/// Agents that use more than this share of the processors may be what made each other slow.
const BUSY_CPU_SHARE: f64 = 0.7;

/// Other programs that use more than this share of all processors are worth a remark.
const OTHER_LOAD: f64 = 0.10;

/// A rig whose event loop is later than this, in milliseconds, disturbs what it measures.
const LATE_RIG_MS: f64 = 5.0;

/// Starts further apart than this, in seconds, are flagged.
const APART_S: f64 = 0.25;

/// Everything worth knowing. `rounds` are the valid ones: together, back to back.
pub fn warnings(
    run: &Run,
    rounds: &[(&Arm, &Arm)],
    sessions: &[SessionSlowdown],
) -> Vec<Placed<Warning>> {
    let restarted = restarts(&run.server).map(|(server, ready_after_s)| {
        Placed::from(Warning::ServerRestarted {
            server,
            ready_after_s,
        })
    });
    let mut out: Vec<Placed<Warning>> = restarted.collect();
    out.extend(egress(run));
    out.extend(models::of_agents(run));
    out.extend(cold_cache(run).into_iter().map(Placed::from));
    out.extend(sent_again_while_open(run));
    out.extend(lacking_streams(run));
    let mut whole = Vec::new();
    if rounds
        .iter()
        .flat_map(|(t, _)| &t.sessions)
        .any(|s| !s.failures.is_empty())
    {
        whole.push(Warning::WorkNotDone);
    }
    if every(run).any(|s| s.tree_end == Some(TreeProof::GoneAsFarAsSeen)) {
        whole.push(Warning::ProcessesNotProven);
    }
    let mut shares = rounds
        .iter()
        .filter_map(|(t, b)| Some((t.cached_share?, b.cached_share?)));
    let differs = shares.find(|(t, b)| (t - b).abs() > CACHED_SHARE_TOLERANCE);
    whole.extend(differs.map(|(cached_share, alone)| Warning::CacheDiffers {
        beside: ArmKind::Together,
        cached_share,
        alone_cached_share: alone,
    }));
    let mut shares = rounds.iter().filter_map(|(t, _)| t.cpu_share);
    let busy = shares.find(|s| *s > BUSY_CPU_SHARE);
    whole.extend(busy.map(|cpu_share| Warning::AgentsBusy {
        cpu_share,
        cores: run.host.cores,
    }));
    out.extend(whole.drain(..).map(Placed::from));
    out.extend(odd(run));
    out.extend(group(other_load(rounds)));
    let unknown = is_load_unknown(rounds).then_some(Warning::OtherLoadUnknown);
    out.extend(unknown.map(Placed::from));
    let arms: Vec<&Arm> = run.rounds.iter().flat_map(|r| &r.arms).collect();
    out.extend(group(rig_lag(&arms)));
    let other_work = sessions.iter().filter(|s| s.same_work_done == Some(false));
    out.extend(group(other_work.map(|s| {
        let same_work = s.same_work.value;
        (Place::session(&s.id), Warning::OtherWork { same_work })
    })));
    if rounds.len() == 1 {
        whole.push(Warning::OneRound);
    }
    let mut skews = rounds.iter().filter_map(|(t, _)| t.start_skew_s);
    let apart = skews.find(|skew| skew.0 > APART_S);
    whole.extend(apart.map(|skew_s| Warning::StartsApart { skew_s }));
    out.extend(whole.into_iter().map(Placed::from));
    out
}

/// All sessions of all arms and rounds.
fn every(run: &Run) -> impl Iterator<Item = &Session> {
    let arms = run.rounds.iter().flat_map(|r| &r.arms);
    arms.flat_map(|a| &a.sessions)
}

/// Odd answers, of each session over all arms and rounds.
fn odd(run: &Run) -> Vec<Placed<Warning>> {
    let mut out = Vec::new();
    for spec in &run.spec.sessions {
        let mut sum: Vec<OddAnswers> = Vec::new();
        for one in every(run)
            .filter(|s| s.id == spec.id)
            .flat_map(|s| &s.odd_answers)
        {
            match sum.iter_mut().find(|known| known.oddity == one.oddity) {
                Some(known) => known.answers += one.answers,
                None => sum.push(one.clone()),
            }
        }
        if !sum.is_empty() {
            out.push((Place::session(&spec.id), Warning::OddAnswers { odd: sum }));
        }
    }
    group(out)
}

/// Of a shorter arm, in seconds, the load of other programs is not measured.
const SHORT_S: f64 = 1.0;

/// Whether an arm that is compared was long enough for the load of others, and it is unknown.
fn is_load_unknown(rounds: &[(&Arm, &Arm)]) -> bool {
    let mut machines = rounds
        .iter()
        .flat_map(|(t, b)| [t.machine, b.machine])
        .flatten();
    machines.any(|m| m.span_s.0 >= SHORT_S && m.foreign_cpu_share.is_none())
}

/// Load of other programs in the arms that are compared, where most.
fn other_load(rounds: &[(&Arm, &Arm)]) -> Option<(Place, Warning)> {
    let arms = rounds.iter().flat_map(|(t, b)| [*t, *b]);
    let shares = arms.filter_map(|arm| Some((arm.kind, arm.machine?.foreign_cpu_share?)));
    let (arm, cpu_share) = shares
        .filter(|(_, share)| *share > OTHER_LOAD)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((Place::arm(arm), Warning::OtherLoad { cpu_share }))
}

/// Whether the rig itself was late, and where most.
fn rig_lag(arms: &[&Arm]) -> Option<(Place, Warning)> {
    let (arm, lag) = arms
        .iter()
        .filter_map(|a| Some((a.kind, a.rig_lag_ms?)))
        .filter(|(_, lag)| lag.p99 > LATE_RIG_MS)
        .max_by(|(_, a), (_, b)| a.p99.total_cmp(&b.p99))?;
    let late = Warning::RigLate {
        p99_ms: lag.p99,
        max_ms: lag.max,
    };
    Some((Place::arm(arm), late))
}

/// What a chat template puts before the nonce is the same for every prompt and may be cached.
const TEMPLATE_TOKENS: u64 = 64;

/// Whether the cache was as cold as the policy has it.
fn cold_cache(run: &Run) -> Vec<Warning> {
    if run.spec.cache != CachePolicy::Cold {
        return Vec::new();
    }
    let mut out = Vec::new();
    let is_warm = |s: &&Session| s.first_cached_tokens.is_some_and(|n| n > TEMPLATE_TOKENS);
    let warm = every(run).filter(is_warm).count() as u64;
    if warm > 0 {
        out.push(Warning::CacheNotCold {
            sessions: warm,
            of: every(run).count() as u64,
        });
    }
    let requests: u64 = every(run).map(|s| s.unmarked_requests).sum();
    if requests > 0 {
        out.push(Warning::RequestsUnmarked { requests });
    }
    out
}

/// Whether agents sent requests again that the server was still working on (case K1).
fn sent_again_while_open(run: &Run) -> Vec<Placed<Warning>> {
    let mut out = Vec::new();
    for spec in &run.spec.sessions {
        let of_name = every(run).filter(|s| s.id == spec.id && s.repeats_open > 0);
        let (mut requests, mut amplification) = (0, None::<f64>);
        for session in of_name {
            requests += session.repeats_open;
            amplification = match (amplification, session.amplification) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        if requests > 0 {
            let warning = Warning::SentAgain {
                requests,
                amplification,
            };
            out.push((Place::session(&spec.id), warning));
        }
    }
    group(out)
}

/// Fields that are named of a session's streams.
const FIELDS_NAMED: usize = 3;

/// Whether streams lacked what their protocol requires, which some clients refuse (case D1).
fn lacking_streams(run: &Run) -> Vec<Placed<Warning>> {
    let mut out = Vec::new();
    for spec in &run.spec.sessions {
        let of_name = || every(run).filter(|s| s.id == spec.id);
        let Some(first) = of_name().find(|s| !s.missing_fields.is_empty()) else {
            continue;
        };
        let named = first.missing_fields.iter().take(FIELDS_NAMED);
        let fields: Vec<MissingField> = named.cloned().collect();
        let sent_again = of_name().map(|s| s.repeats).sum();
        let warning = Warning::StreamsLackFields { fields, sent_again };
        out.push((Place::session(&spec.id), warning));
    }
    group(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_clock::Seconds;
    use flashrig_record::testing::arm;
    use flashrig_record::{MachineLoad, RigLag};

    #[test]
    fn load_that_is_unknown_is_said_of_arms_that_are_long_enough() {
        let with = |span: f64, share| {
            let mut arm = arm(ArmKind::Together, Vec::new());
            arm.machine = Some(MachineLoad {
                span_s: Seconds(span),
                foreign_cpu_share: share,
                ..MachineLoad::default()
            });
            is_load_unknown(&[(&arm, &arm)])
        };
        assert!(with(20.0, None));
        assert!(!with(20.0, Some(0.0)));
        assert!(!with(0.5, None));
    }

    #[test]
    fn a_rig_that_was_late_in_more_than_one_percent_of_the_time_marks_the_run_as_disturbed() {
        let with = |p99| {
            let mut arm = arm(ArmKind::Together, Vec::new());
            arm.rig_lag_ms = Some(RigLag {
                p50: 0.1,
                p99,
                max: 40.0,
            });
            rig_lag(&[&arm])
        };
        assert_eq!(with(5.0), None);
        let late = with(5.1).unwrap();
        assert_eq!(late.0, Place::arm(ArmKind::Together));
        assert!(matches!(late.1, Warning::RigLate { p99_ms, .. } if p99_ms == 5.1));
        assert_eq!(rig_lag(&[&arm(ArmKind::Together, Vec::new())]), None);
    }
}
