//! From the events of `fit` and `ttft` to their record, for a run that finished and for one that
//! was killed.

use super::{LoadEvent, LoadRun, LoadWhat, RunState};

/// Applies one event to the record. `None` before the first `run_started`.
pub fn apply_load(run: &mut Option<LoadRun>, event: LoadEvent) {
    let Some(record) = run else {
        if let LoadWhat::RunStarted { run: started } = event.what {
            *run = Some(*started);
        }
        return;
    };
    match event.what {
        LoadWhat::RunStarted { run: started } => *record = *started,
        // What was judged is judged again at the end, over everything.
        LoadWhat::RunResumed { .. } => {
            record.state = RunState::Unfinished;
            record.stopped_because = None;
            record.cells.clear();
            record.verdict = None;
            record.resumed += 1;
        }
        LoadWhat::Calibrated { calibration } => record.calibration = Some(calibration),
        LoadWhat::CellStarted { .. } => {}
        LoadWhat::CellMeasured { measured } => record.measured.push(*measured),
        LoadWhat::ServerLife { life } => record.server.life.push(*life),
        LoadWhat::CellLeftOut { left_out } => record.left_out.push(left_out),
        LoadWhat::RunFinished {
            state,
            stopped_because,
            rig_cpu_s,
            cells,
            ttft,
            verdict,
        } => {
            record.state = state;
            record.stopped_because = stopped_because;
            record.rig.cpu_s = rig_cpu_s;
            record.cells = cells;
            record.ttft = ttft;
            record.verdict = verdict.map(|v| *v);
        }
    }
}
