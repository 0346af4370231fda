//! What will be run: sessions, rounds, the order of arms. Pure.

pub mod fit;
pub mod grid;
pub mod resume;
pub mod rounds;
pub mod search;
pub mod server;
pub mod sweep;

use std::sync::Arc;
use std::time::Duration;

use rounds::Rounds;

use crate::agent::{CommandLine, Found, Profile};
use crate::task::Task;
use flashrig_gateway::egress::Pattern;
use flashrig_record::{AgentId, ArmKind, CachePolicy, GateSpec, SessionSpec, Thresholds};

/// Something that was asked for and cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// An agent that was found and identified.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its profile.
    pub profile: Profile,
    /// Its program.
    pub found: Found,
    /// The version that it told.
    pub version: Option<String>,
    /// The command line, for a profile without a program of its own.
    pub command: Option<CommandLine>,
}

impl Agent {
    /// Name and version, as recorded.
    pub fn id(&self) -> AgentId {
        AgentId {
            name: self.profile.name.clone(),
            version: self.version.clone(),
            profile_file: self.profile.file.clone(),
        }
    }
}

/// One session of every arm.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Unique in the run.
    pub id: String,
    /// Place in the plan, from 0; names the session's scratch folder.
    pub index: usize,
    /// What is to be done.
    pub task: Arc<Task>,
    /// Who does it.
    pub agent: Arc<Agent>,
    /// Limit of the session.
    pub time_limit: Duration,
}

/// The whole experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sessions of every arm.
    pub sessions: Vec<SessionPlan>,
    /// Scored rounds.
    pub rounds: Rounds,
    /// Cache policy.
    pub cache: CachePolicy,
    /// Slowdown thresholds.
    pub thresholds: Thresholds,
    /// The gate of the third arm, when there is one.
    pub gate: Option<GateSpec>,
    /// Whether rounds with much foreign load are compared all the same.
    pub foreign_load_accepted: bool,
    /// Whether the sessions run back to back twice, and never together.
    pub against_itself: bool,
    /// The longest prompt that the gateway lets through, in tokens.
    pub max_prompt_tokens: Option<u64>,
    /// Whether the gateway answers probes itself.
    pub answer_probes: bool,
    /// Longest wait of a request for its first token, on the wall clock.
    pub first_token_limit: Duration,
    /// Whether the server is brought back to a known state before each arm.
    pub reset: bool,
    /// Destinations beyond this machine that every agent may reach.
    pub allow_egress: Vec<Pattern>,
}

impl Plan {
    /// Names the sessions after their tasks; a task that comes again gets a number.
    pub fn new(
        wanted: Vec<(Arc<Task>, Arc<Agent>)>,
        rounds: Rounds,
        cache: CachePolicy,
        thresholds: Thresholds,
        time_limit: Option<Duration>,
    ) -> Self {
        let mut sessions: Vec<SessionPlan> = Vec::with_capacity(wanted.len());
        for (index, (task, agent)) in wanted.into_iter().enumerate() {
            let before = sessions.iter().filter(|s| s.task.name == task.name).count();
            let id = if before == 0 {
                task.name.clone()
            } else {
                format!("{}-{}", task.name, before + 1)
            };
            let time_limit = time_limit.unwrap_or(task.time_limit);
            sessions.push(SessionPlan {
                id,
                index,
                task,
                agent,
                time_limit,
            });
        }
        Self {
            sessions,
            rounds,
            cache,
            thresholds,
            gate: None,
            foreign_load_accepted: false,
            against_itself: false,
            max_prompt_tokens: None,
            answer_probes: false,
            first_token_limit: Duration::MAX,
            reset: false,
            allow_egress: Vec::new(),
        }
    }

    /// The arms of a round, in the order of the first round.
    pub fn arms(&self) -> Vec<ArmKind> {
        if self.against_itself {
            return vec![ArmKind::BackToBack, ArmKind::BackToBackAgain];
        }
        let gated = self.gate.map(|_| ArmKind::Gated);
        let first = [ArmKind::Together].into_iter().chain(gated);
        first.chain([ArmKind::BackToBack]).collect()
    }

    /// The sessions as recorded.
    pub fn session_specs(&self) -> Vec<SessionSpec> {
        self.sessions
            .iter()
            .map(|s| SessionSpec {
                id: s.id.clone(),
                task: s.task.name.clone(),
                task_folder: s.task.folder.clone(),
                agent: s.agent.id(),
            })
            .collect()
    }
}

/// The order of arms in a round, from 1, so that what changes over time does not always fall on
/// the same arm. Two arms alternate. Three rotate, and after each full turn the rotation goes
/// backwards, so that six rounds hold every order once.
pub fn arm_order(round: u32, mut kinds: Vec<ArmKind>) -> Vec<ArmKind> {
    let count = kinds.len();
    let index = usize::try_from(round.saturating_sub(1)).unwrap_or(0);
    if count > 2 && (index / count) % 2 == 1 {
        kinds.reverse();
    }
    kinds.rotate_left(index % count);
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [ArmKind; 2] = [ArmKind::Together, ArmKind::BackToBack];
    const ALL: [ArmKind; 3] = [ArmKind::Together, ArmKind::Gated, ArmKind::BackToBack];

    #[test]
    fn arms_alternate_from_round_to_round() {
        assert_eq!(arm_order(1, BOTH.to_vec())[0], ArmKind::Together);
        assert_eq!(arm_order(2, BOTH.to_vec())[0], ArmKind::BackToBack);
        assert_eq!(arm_order(3, BOTH.to_vec())[0], ArmKind::Together);
        assert_eq!(arm_order(4, BOTH.to_vec()).len(), 2);
    }

    #[test]
    fn three_arms_each_come_first_once_in_three_rounds_and_in_every_order_in_six() {
        let first: Vec<ArmKind> = (1..=3).map(|r| arm_order(r, ALL.to_vec())[0]).collect();
        assert_eq!(
            first,
            [ArmKind::Together, ArmKind::Gated, ArmKind::BackToBack]
        );
        let orders: std::collections::HashSet<Vec<ArmKind>> =
            (1..=6).map(|r| arm_order(r, ALL.to_vec())).collect();
        assert_eq!(orders.len(), 6);
    }
}
