//! Judgement: from measured sessions to splits, valid rounds and verdicts. Pure; no I/O.

mod against_itself;
mod claim;
mod cut_prompts;
mod egress;
pub mod fit;
mod functional;
mod gated;
mod life;
mod models;
mod odd_answers;
mod round;
mod routes;
mod same_work;
mod server_event;
mod split;
mod summary;
pub mod sweep;
mod time;
pub mod ttft;
mod warnings;

use flashrig_record::{Functional, Placed, Run, RunState, TimeVerdict, Verdict};

pub use claim::{Claim, Slowdowns};
pub use cut_prompts::cut_prompts;
pub use egress::egress;
pub use functional::session_failures;
pub use models::other_models;
pub use odd_answers::odd_answers;
pub use round::{arm_figures, foreign_load, round_validity};
pub use routes::{amplification, missing_fields, models_asked, unknown_routes};
pub use server_event::server_events;
pub use split::split;
pub use summary::traffic;
pub use time::is_settled;

/// Judges a run by the rounds that it has.
pub fn verdict(run: &Run, state: RunState) -> Verdict {
    let (functional, mut reasons) = functional::judge(run, state);
    let time = time::judge(run);
    reasons.extend(time.reasons);
    let mut warnings = time.warnings;
    warnings.extend(gated::warnings(run));
    let against_itself = against_itself::judge(run);
    let differ = against_itself.as_ref().and_then(against_itself::warning);
    warnings.extend(differ.map(Placed::from));
    Verdict {
        functional,
        time: time.claim.verdict,
        worst_slowdown: time.worst,
        evidence: time.claim.evidence,
        worst_session: time.worst_session,
        together_over_back_to_back: time.together_over_back_to_back,
        gated: gated::judge(run),
        against_itself,
        sessions: time.sessions,
        rounds_needed: time.claim.rounds_needed,
        reasons,
        warnings,
    }
}

/// The answer of a run, as its exit code tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Pass or warning, or one of the two.
    Yes,
    /// Functional or time fail, or a warning for which a fail is not excluded.
    No,
    /// The rig, its surroundings or every round failed.
    NotMeasured,
    /// The rounds prove nothing about the thresholds.
    Inconclusive,
}

/// What the verdict answers.
pub fn answer(verdict: &Verdict) -> Answer {
    match (verdict.functional, verdict.time) {
        (Functional::Fail, _) | (_, TimeVerdict::Fail | TimeVerdict::WarnOrFail) => Answer::No,
        (Functional::Unknown, _) | (_, TimeVerdict::Unknown) => Answer::NotMeasured,
        (_, TimeVerdict::Inconclusive) => Answer::Inconclusive,
        (
            _,
            TimeVerdict::Pass
            | TimeVerdict::PassOrWarn
            | TimeVerdict::Warn
            | TimeVerdict::NotCompared,
        ) => Answer::Yes,
    }
}
