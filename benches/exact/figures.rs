//! Quantiles, and where and when they were taken.

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

pub fn print_load(when: &str) {
    let load = read("/proc/loadavg");
    let load = load.rsplitn(3, ' ').nth(2).unwrap_or("unknown");
    println!("load {when}: {load}");
}

pub fn print_machine() {
    let cpuinfo = read("/proc/cpuinfo");
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{} · {cores} × {cpu} · {} {}",
        jiff::Timestamp::now().strftime("%Y-%m-%d %H:%MZ"),
        std::env::consts::OS,
        read("/proc/sys/kernel/osrelease").trim(),
    );
    print_load("at the start");
}

/// Some values, sorted.
#[derive(Default, Clone)]
pub struct Values(Vec<f64>);

impl Values {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// All values of several.
    pub fn pooled<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        Self::new(parts.flat_map(|part| part.0.iter().copied()).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that `share` of them do not exceed; not a number when there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "fewer values than 2^53"
        )]
        let at = (self.0.len().saturating_sub(1) as f64 * share).round() as usize;
        self.0.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Whether a target is kept, in a word.
pub fn verdict(value: f64, target: f64) -> &'static str {
    if value <= target { "met" } else { "NOT MET" }
}

/// Nanoseconds between two stamps, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53 ns")]
pub fn us(later: u64, earlier: u64) -> f64 {
    (i128::from(later) - i128::from(earlier)) as f64 / 1e3
}
