//! Renders a stored run of `pair` as text: the `run.json` that is named, or a made-up one.

use flashrig_record::testing::{arm, run, session};
use flashrig_record::{ArmKind, Round, Run, RunState};
use flashrig_report::judge::{arm_figures, round_validity, verdict};
use flashrig_report::{View, pair_text};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let record = match std::env::args_os().nth(1) {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => made_up(),
    };
    print!("{}", pair_text(&record, View::default()));
    Ok(())
}

fn made_up() -> Run {
    let together = [
        session("fix-bug", 0.0, 40.0),
        session("add-flag", 0.1, 35.0),
    ];
    let alone = [
        session("fix-bug", 60.0, 80.0),
        session("add-flag", 82.0, 104.0),
    ];
    let kinds = [ArmKind::Together, ArmKind::BackToBack];
    let mut arms = vec![arm(kinds[0], together.into()), arm(kinds[1], alone.into())];
    for arm in &mut arms {
        arm_figures(arm, Some(8));
    }
    let invalid_reasons = round_validity(&arms, 2, &kinds);
    let mut record = run(&["fix-bug", "add-flag"]);
    record.rounds = vec![Round {
        index: 1,
        valid: invalid_reasons.is_empty(),
        invalid_reasons,
        arms,
    }];
    record.verdict = Some(verdict(&record, RunState::Finished));
    record
}
