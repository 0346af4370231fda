//! What agents and server made of the prompts' common prefixes, an agent that changes its own
//! prefix apart from a server that loses a stable one.

use std::collections::BTreeMap;

use crate::figures::{count, float, shown_rounds};
use crate::page::Page;
use flashrig_config::plural;
use flashrig_record::{PrefixChange, PrefixSummary, Run, Session};

/// Places of changes that are named.
const NAMED: usize = 2;

/// `stable prefix (claude: NAME=VALUE)`, when that was asked for.
pub fn setting(run: &Run) -> Option<String> {
    let set = run.spec.stable_prefix.as_ref()?;
    let agents: Vec<String> = set
        .iter()
        .map(|(agent, set)| match set.is_empty() {
            true => format!("{agent}: as it comes"),
            false => format!("{agent}: {}", set.join(" ")),
        })
        .collect();
    Some(format!("stable prefix ({})", agents.join(", ")))
}

/// A paragraph for each agent.
pub fn lines(run: &Run, page: &mut Page) {
    let sessions: Vec<&Session> = shown_rounds(run)
        .into_iter()
        .flat_map(|r| &r.arms)
        .flat_map(|a| &a.sessions)
        .collect();
    let mut by_agent: BTreeMap<&str, PrefixSummary> = BTreeMap::new();
    for session in sessions {
        if let Some(prefix) = &session.prefix {
            add(by_agent.entry(&session.agent.name).or_default(), prefix);
        }
    }
    for (agent, sum) in by_agent {
        page.line(&format!("Prompt prefix of {agent}: {}.", message(&sum)));
        let at_start =
            |c: &PrefixChange| !c.field.starts_with("messages") && c.turns * 2 > sum.turns;
        if sum.changes.iter().any(at_start) && run.spec.stable_prefix.is_none() {
            page.line(
                "  After such a change a server can reuse almost nothing. --stable-prefix turns the \
                 change off, where the agent's profile names a setting for it.",
            );
        }
    }
}

fn message(sum: &PrefixSummary) -> String {
    let turns = sum.turns;
    let mut said = Vec::new();
    if sum.changed == 0 {
        said.push(match turns {
            1 => "stable in its one turn".to_owned(),
            _ => format!("stable in all {turns} turns"),
        });
    } else {
        let mut changes: Vec<String> = sum
            .changes
            .iter()
            .take(NAMED)
            .map(|c| {
                format!(
                    "the agent changed its prefix at {}, byte {}, in {} of {turns} turns",
                    c.field, c.byte, c.turns
                )
            })
            .collect();
        let rest: u64 = sum.changes.iter().skip(NAMED).map(|c| c.turns).sum();
        if rest > 0 {
            changes.push(format!("elsewhere in {rest}"));
        }
        said.push(changes.join(", "));
    }
    let stable = turns - sum.changed;
    if sum.judged > 0 && sum.lost > 0 {
        said.push(format!(
            "the server lost a stable prefix in {} of {} turns",
            sum.lost, sum.judged
        ));
    } else if sum.judged > 0 {
        said.push(format!(
            "the server reused it in {} of {}",
            sum.judged,
            plural(sum.judged, "stable turn")
        ));
    } else if stable > 0 {
        said.push("the server does not say what it reused".to_owned());
    }
    if let (Some(could), Some(did)) = (sum.reusable_tokens, sum.reused_tokens) {
        said.push(format!(
            "about {} tokens could be reused, by length; the server says that it reused {}",
            count(float(Some(could))),
            count(float(Some(did)))
        ));
    }
    said.join("; ")
}

fn add(sum: &mut PrefixSummary, one: &PrefixSummary) {
    sum.turns += one.turns;
    sum.changed += one.changed;
    sum.judged += one.judged;
    sum.lost += one.lost;
    for (total, part) in [
        (&mut sum.reusable_tokens, one.reusable_tokens),
        (&mut sum.reused_tokens, one.reused_tokens),
    ] {
        if let Some(part) = part {
            *total = Some(total.unwrap_or(0) + part);
        }
    }
    for change in &one.changes {
        match sum.changes.iter_mut().find(|c| c.field == change.field) {
            Some(known) => {
                known.turns += change.turns;
                known.byte = known.byte.min(change.byte);
            }
            None => sum.changes.push(change.clone()),
        }
    }
    sum.changes.sort_by_key(|c| std::cmp::Reverse(c.turns));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(turns: u64, changed: u64, judged: u64, lost: u64) -> PrefixSummary {
        PrefixSummary {
            turns,
            changed,
            judged,
            lost,
            ..PrefixSummary::default()
        }
    }

    #[test]
    fn a_change_by_the_agent_is_told_apart_from_a_loss_by_the_server() {
        let mut changed = summary(13, 12, 1, 0);
        changed.changes.push(PrefixChange {
            field: "system[0]".into(),
            byte: 58,
            turns: 12,
        });
        let said = message(&changed);
        assert!(
            said.contains("the agent changed its prefix at system[0], byte 58, in 12 of 13 turns"),
            "{said}"
        );
        assert!(!said.contains("lost"), "{said}");

        let said = message(&summary(13, 0, 13, 3));
        assert!(
            said.contains("the server lost a stable prefix in 3 of 13 turns"),
            "{said}"
        );
        assert!(!said.contains("changed"), "{said}");
    }

    #[test]
    fn a_server_that_says_nothing_is_not_said_to_have_lost_or_kept_anything() {
        let said = message(&summary(5, 0, 0, 0));
        assert_eq!(
            said,
            "stable in all 5 turns; the server does not say what it reused"
        );
    }
}
