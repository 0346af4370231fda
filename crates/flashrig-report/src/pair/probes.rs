//! What flashrig's gateway answered in the server's place.

use crate::page::Page;
use flashrig_record::Run;

/// A line, when it was asked to answer probes.
pub fn line(run: &Run, page: &mut Page) {
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
        page.line("Probes: flashrig had none to answer (--answer-probes).");
        return;
    }
    page.line(&format!(
        "Probes: flashrig answered {answered} of {all} itself (--answer-probes). What the server \
         would have answered is unknown, and token counts among them are estimates."
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::View;
    use flashrig_record::testing::{arm, run, session};
    use flashrig_record::{ArmKind, Round};

    #[test]
    fn the_line_counts_what_was_answered_and_is_there_only_when_flashrig_was_asked_to() {
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
            let mut page = Page::new(View::default());
            line(run, &mut page);
            page.text()
        };
        assert_eq!(said(&run), "");
        run.spec.answer_probes = true;
        assert!(said(&run).starts_with("Probes: flashrig answered 2 of 3 itself"));
        run.rounds.clear();
        assert!(said(&run).starts_with("Probes: flashrig had none"));
    }
}
