//! What will be run: sessions, rounds, the order of arms. Pure.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::{CommandLine, Found, Profile};
use crate::egress::Pattern;
use crate::records::{AgentId, ArmKind, CachePolicy, SessionSpec, Thresholds};
use crate::task::Task;

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
    pub rounds: u32,
    /// Cache policy.
    pub cache: CachePolicy,
    /// Slowdown thresholds.
    pub thresholds: Thresholds,
    /// Destinations beyond this machine that every agent may reach.
    pub allow_egress: Vec<Pattern>,
}

impl Plan {
    /// Names the sessions after their tasks; a task that comes again gets a number.
    pub fn new(
        wanted: Vec<(Arc<Task>, Arc<Agent>)>,
        rounds: u32,
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
            allow_egress: Vec::new(),
        }
    }

    /// The sessions as recorded.
    pub fn session_specs(&self) -> Vec<SessionSpec> {
        self.sessions
            .iter()
            .map(|s| SessionSpec {
                id: s.id.clone(),
                task: s.task.name.clone(),
                agent: s.agent.id(),
            })
            .collect()
    }
}

/// The order of arms in a round, from 1: odd rounds begin together, even ones back to back, so
/// that what changes over time does not always fall on the same arm.
pub fn arm_order(round: u32) -> [ArmKind; 2] {
    if round % 2 == 1 {
        [ArmKind::Together, ArmKind::BackToBack]
    } else {
        [ArmKind::BackToBack, ArmKind::Together]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_alternate_from_round_to_round() {
        assert_eq!(arm_order(1)[0], ArmKind::Together);
        assert_eq!(arm_order(2)[0], ArmKind::BackToBack);
        assert_eq!(arm_order(3)[0], ArmKind::Together);
    }
}
