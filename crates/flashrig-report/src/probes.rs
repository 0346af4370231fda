//! What flashrig's gateway answered in the server's place, in words.

use std::fmt::Write as _;

use flashrig_record::Run;

/// A line, when it was told to answer probes.
pub fn line(run: &Run, out: &mut String) {
    if !run.spec.answer_probes {
        return;
    }
    let sessions = || {
        run.rounds
            .iter()
            .flat_map(|r| &r.arms)
            .flat_map(|a| &a.sessions)
    };
    let answered: u64 = sessions().map(|s| s.answered_by_gateway).sum();
    let all: u64 = sessions().map(|s| s.probe_requests).sum();
    if answered == 0 {
        let _ = writeln!(
            out,
            "Probes: there was none for flashrig to answer (--answer-probes)."
        );
        return;
    }
    let _ = writeln!(
        out,
        "Probes: flashrig answered {answered} of {all} itself (--answer-probes); what the server \
         would have said to them is not known, and token counts among them were estimates."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::{arm, run, session};
    use flashrig_record::{ArmKind, Round};

    #[test]
    fn the_line_counts_what_was_answered_and_is_there_only_when_flashrig_was_told_to() {
        let mut run = run(&["a"]);
        let mut a = session("a", 0.0, 1.0);
        (a.probe_requests, a.answered_by_gateway) = (3, 2);
        run.rounds = vec![Round {
            index: 1,
            valid: true,
            invalid_reasons: Vec::new(),
            arms: vec![arm(ArmKind::Together, vec![a])],
        }];
        let said = |run: &Run| {
            let mut out = String::new();
            line(run, &mut out);
            out
        };
        assert_eq!(said(&run), "");
        run.spec.answer_probes = true;
        assert!(said(&run).starts_with("Probes: flashrig answered 2 of 3 itself"));
        run.rounds.clear();
        assert!(said(&run).starts_with("Probes: there was none"));
    }
}
