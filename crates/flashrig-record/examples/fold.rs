//! Folds the events of a run that was killed into its record: what is in `events.jsonl` is enough.

use flashrig_clock::Seconds;
use flashrig_record::testing::{run, session};
use flashrig_record::{ArmKind, Event, What, apply};

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> serde_json::Result<()> {
    let events = [
        What::RunStarted {
            run: Box::new(run(&["fix-bug"])),
        },
        What::ArmStarted {
            round: 1,
            arm: ArmKind::Together,
        },
        What::SessionVerified {
            round: 1,
            arm: ArmKind::Together,
            session: Box::new(session("fix-bug", 0.0, 12.5)),
        },
    ];
    // As they stand in the file, one a line.
    let lines: Result<Vec<String>, _> = (events.into_iter())
        .map(|what| {
            let at_s = Seconds(0.0);
            serde_json::to_string(&Event { at_s, what })
        })
        .collect();
    let mut record = None;
    for line in lines? {
        apply(&mut record, serde_json::from_str(&line)?);
    }
    let round = record.map(|run| run.rounds);
    println!("{}", serde_json::to_string_pretty(&round)?);
    Ok(())
}
