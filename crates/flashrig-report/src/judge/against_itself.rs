//! A run against itself: the same sessions back to back twice. What differs is the measurement.

use super::time::{compared, slowdowns_of};
use crate::stats::{self, lower_bound};
use flashrig_record::{AgainstItself, Arm, ArmKind, Run, SessionRatio, Warning};

/// Compares the two equal arms over the valid rounds; `None` for a run of another kind.
pub fn judge(run: &Run) -> Option<AgainstItself> {
    if !run.spec.against_itself {
        return None;
    }
    let rounds = compared(run, ArmKind::BackToBackAgain, ArmKind::BackToBack);
    let per_session = slowdowns_of(run, &rounds);
    let overall: Vec<f64> = rounds.iter().filter_map(|(a, b)| sums(a, b)).collect();
    let all = || per_session.iter().flatten();
    let ids = run.spec.sessions.iter().map(|s| s.id.clone());
    Some(AgainstItself {
        overall: stats::ratio(&overall),
        sessions: ids
            .zip(&per_session)
            .map(|(id, values)| SessionRatio {
                id,
                ratio: stats::ratio(values),
            })
            .collect(),
        largest_factor: all().map(|r| r.max(1.0 / r)).reduce(f64::max),
        differs: differs(&per_session),
    })
}

/// What is to be said of it.
pub fn warning(judged: &AgainstItself) -> Option<Warning> {
    let factor = judged.largest_factor?;
    (judged.differs == Some(true)).then_some(Warning::EqualArmsDiffer { factor })
}

fn sums(again: &Arm, first: &Arm) -> Option<f64> {
    let (again, first) = (again.sum_of_walls_s?.0, first.sum_of_walls_s?.0);
    (first > 0.0).then(|| again / first)
}

/// Whether a session's ratio is above or below 1 for certain; each way is a claim.
fn differs(per_session: &[Vec<f64>]) -> Option<bool> {
    let claims = 2 * per_session.len();
    let mut found = false;
    for values in per_session {
        let inverted: Vec<f64> = values.iter().map(|v| 1.0 / v).collect();
        for side in [values, &inverted] {
            found |= lower_bound(side, side.len(), claims)? > 1.0;
        }
    }
    (!per_session.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_around_1_is_no_difference_and_a_constant_shift_is_one() {
        let around = vec![vec![1.02, 0.97, 1.01, 0.99], vec![0.98, 1.03, 1.0, 1.01]];
        assert_eq!(differs(&around), Some(false));
        let shifted = vec![vec![1.02, 0.97, 1.01, 0.99], vec![0.80, 0.81, 0.79, 0.80]];
        assert_eq!(differs(&shifted), Some(true));
        assert_eq!(differs(&[vec![1.5]]), None, "one round proves nothing");
    }
}
