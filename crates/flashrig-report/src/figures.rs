//! The figures that reports show: medians over rounds, and how they are written.

use super::table::UNKNOWN;
use crate::judge::sweep::factor;
use crate::stats::median;
use flashrig_config::{format_count, format_seconds};
use flashrig_record::{Arm, ArmKind, Round, Run, Session, Split};

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

/// `12.3 s`, `2 min 03 s`, `0 s`; a dash when unknown.
pub fn seconds(value: Option<f64>) -> String {
    shown(value, |value| match value {
        0.0 => "0 s".to_owned(),
        value => format_seconds(value),
    })
}

/// `1.43x`; a dash when unknown.
pub fn times(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:.2}x"))
}

/// `1.31 to 1.55`, the 95% interval of a ratio; a dash without one.
pub fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(unknown, |[low, high]| {
        format!("{} to {}", factor(low), factor(high))
    })
}

/// `12,345`; a dash when unknown.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and sums of tokens are positive and far below 2^64"
)]
pub fn count(value: Option<f64>) -> String {
    shown(value, |value| format_count(value.round() as u64))
}

/// `12.3`; a dash when unknown.
pub fn rate(value: Option<f64>) -> String {
    shown(value, |value| format!("{value:.1}"))
}

/// `45%` of a share from 0 to 1; a dash when unknown.
pub fn percent(share: Option<f64>) -> String {
    shown(share, |share| format!("{:.0}%", share * 100.0))
}

/// `18 MB`, `1.5 GB`; a dash when unknown.
pub fn bytes(value: Option<f64>) -> String {
    shown(value, |bytes| match bytes {
        b if b < 1e9 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    })
}

/// The part of a whole, when both are known.
pub fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    let (part, whole) = (float(part)?, float(whole)?);
    (whole > 0.0).then(|| part / whole)
}

/// A count as a figure.
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and counts far below 2^53"
)]
pub fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn shown(value: Option<f64>, how: impl Fn(f64) -> String) -> String {
    value.map_or_else(unknown, how)
}

/// What stands for an unknown figure.
pub fn unknown() -> String {
    UNKNOWN.to_owned()
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
        assert_eq!(seconds(Some(0.04)), "40 ms");
        assert_eq!(seconds(Some(0.0)), "0 s");
        assert_eq!(seconds(Some(123.4)), "2 min 03 s");
        assert_eq!(seconds(Some(3599.8)), "60 min 00 s");
        assert_eq!(count(Some(1_234_567.0)), "1,234,567");
        assert_eq!(count(Some(123.0)), "123");
    }
}
