//! What flashrig's gateway answered in the server's place, in words.

use std::fmt::Write as _;

use crate::records::Run;

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
    let _ = writeln!(
        out,
        "Probes: flashrig answered {answered} of {all} itself (--answer-probes); what the server \
         would have said to them is not known, and token counts among them were estimates."
    );
}
