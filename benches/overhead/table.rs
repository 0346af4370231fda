//! One row for each figure: what, median, p95, how many, the target, and whether the median keeps it.

use std::fmt;
use std::time::Duration;

/// What a figure is measured in.
#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    Milliseconds,
    Percent,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Milliseconds if value.abs() >= 1000.0 => format!("{:.2} s", value / 1000.0),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Percent => format!("{value:.2} %"),
        }
    }
}

/// One figure.
pub struct Row {
    what: String,
    unit: Unit,
    values: Vec<f64>,
    /// `None` for figures that only explain others.
    target: Option<f64>,
    note: String,
}

impl Row {
    /// Milliseconds.
    pub fn times(what: impl Into<String>, times: &[Duration], target_ms: Option<f64>) -> Self {
        let values = times.iter().map(|t| t.as_secs_f64() * 1e3).collect();
        Self::values(what, Unit::Milliseconds, values, target_ms)
    }

    /// Values as they are.
    pub fn values(
        what: impl Into<String>,
        unit: Unit,
        mut values: Vec<f64>,
        target: Option<f64>,
    ) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            what: what.into(),
            unit,
            values,
            target,
            note: String::new(),
        }
    }

    /// A figure that could not be taken here.
    pub fn missing(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::values(what, Unit::Milliseconds, Vec::new(), None).with(why)
    }

    /// Adds a remark.
    pub fn with(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, p95) = if self.values.is_empty() {
            ("not measured".to_owned(), String::new())
        } else {
            (
                self.unit.show(quantile(&self.values, 0.5)),
                self.unit.show(quantile(&self.values, 0.95)),
            )
        };
        let target = self
            .target
            .map_or(String::new(), |t| format!("≤ {}", self.unit.show(t)));
        let kept = match self.target {
            Some(target) if !self.values.is_empty() => {
                if quantile(&self.values, 0.5) <= target {
                    "met"
                } else {
                    "NOT MET"
                }
            }
            _ => "",
        };
        write!(
            f,
            "| {:<52} | {:>12} | {:>10} | {:>4} | {:>12} | {:<7} | {} |",
            self.what,
            median,
            p95,
            self.values.len(),
            target,
            kept,
            self.note
        )
    }
}

/// Where and when, and the table's head.
pub fn print_head() {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo")
        .lines()
        .find_map(|l| {
            Some(
                l.strip_prefix("model name")?
                    .split_once(':')?
                    .1
                    .trim()
                    .to_owned(),
            )
        })
        .unwrap_or_else(|| "unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.rsplitn(3, ' ').nth(2).unwrap_or("unknown");
    let system = nix::sys::utsname::uname().map_or_else(
        |_| std::env::consts::OS.to_owned(),
        |u| {
            let (name, release) = (u.sysname().to_string_lossy(), u.release().to_string_lossy());
            format!("{name} {release}")
        },
    );
    println!(
        "{} · {cores} × {cpu} · {system} · load {load}\n",
        jiff::Timestamp::now().strftime("%Y-%m-%d %H:%MZ"),
    );
    println!(
        "| {:<52} | {:>12} | {:>10} | {:>4} | {:>12} | {:<7} | remark |",
        "what", "median", "p95", "n", "target", "median"
    );
    println!("|---|---:|---:|---:|---:|---|---|");
}

/// The value that `share` of the sorted values do not exceed, between its two neighbours by their
/// distance.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few hundred values"
    )]
    let (at, rest) = {
        let place = (sorted.len() - 1) as f64 * share;
        (place as usize, place.fract())
    };
    let next = sorted.get(at + 1).copied().unwrap_or(sorted[at]);
    sorted[at] + (next - sorted[at]) * rest
}
