//! The figures that reports show: medians over rounds, and how they are written.

use crate::stats::median;
use flashrig_config::format_count;
use flashrig_record::{Arm, ArmKind, Ratio, Round, Run, Session, Split};

/// The rounds that figures are taken from: the valid ones, else all.
pub fn shown_rounds(run: &Run) -> Vec<&Round> {
    let valid: Vec<&Round> = run.rounds.iter().filter(|r| r.valid).collect();
    if valid.is_empty() {
        run.rounds.iter().collect()
    } else {
        valid
    }
}

/// The sessions of one name in one arm, over the shown rounds.
pub fn sessions<'r>(run: &'r Run, kind: ArmKind, id: &str) -> Vec<&'r Session> {
    arms(run, kind)
        .into_iter()
        .filter_map(|a| a.sessions.iter().find(|s| s.id == id))
        .collect()
}

/// The arms of one kind, over the shown rounds.
pub fn arms(run: &Run, kind: ArmKind) -> Vec<&Arm> {
    shown_rounds(run)
        .into_iter()
        .filter_map(|r| r.arms.iter().find(|a| a.kind == kind))
        .collect()
}

/// The median of a figure over sessions; `None` when any of them lacks it.
pub fn middle<T>(items: &[&T], of: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = items.iter().map(|i| of(i)).collect();
    median(&values?)
}

/// The part of a split, median over sessions.
pub fn part(sessions: &[&Session], of: impl Fn(&Split) -> f64) -> Option<f64> {
    middle(sessions, |s| s.split.as_ref().map(&of))
}

/// `12.3 s`, `2 min 03 s`; a dash when unknown.
pub fn seconds(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(s) if s < 100.0 => format!("{s:.1} s"),
        Some(s) => {
            let whole = s.round();
            format!("{} min {:02} s", (whole / 60.0).floor(), whole % 60.0)
        }
    }
}

/// `1.43×`; a dash when unknown.
pub fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.2}×"))
}

/// `1.43×  (1.31–1.55, n=3)`, the brackets only where there is an interval.
pub fn ratio(ratio: &Ratio) -> String {
    let value = times(ratio.value);
    match ratio.ci95 {
        Some([low, high]) => format!("{value} (95% {low:.2}–{high:.2}, n={})", ratio.n),
        None => value,
    }
}

/// `12,345`; a dash when unknown.
pub fn count(value: Option<f64>) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts and sums of tokens are positive and far below 2^64"
    )]
    value.map_or_else(
        || "–".to_owned(),
        |value| format_count(value.round() as u64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_figures_are_dashes_and_never_zero() {
        assert_eq!(
            (seconds(None), times(None), count(None)),
            ("–".into(), "–".into(), "–".into())
        );
    }

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(seconds(Some(12.34)), "12.3 s");
        assert_eq!(seconds(Some(123.4)), "2 min 03 s");
        assert_eq!(seconds(Some(3599.8)), "60 min 00 s");
        assert_eq!(count(Some(1_234_567.0)), "1,234,567");
        assert_eq!(count(Some(123.0)), "123");
    }
}
