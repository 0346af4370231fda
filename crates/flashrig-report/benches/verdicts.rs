//! How often a verdict is wrong, where the truth is known: runs are made up by the thousand, with
//! slowdowns and scatter that were chosen, and judged as `pair` and `fit` judge.
//!
//! `cargo bench --bench verdicts` prints the tables of `docs/STATISTICS.md`; the seed is fixed. A
//! claim is wrong when the true largest slowdown contradicts it. Beside each stands the estimator
//! that flashrig had before: the median of each round's largest slowdown, with Student's interval of
//! the mean logarithm.

#![expect(clippy::print_stdout, reason = "a benchmark shows what it finds")]

use fastrand::Rng;
use flashrig_record::{Thresholds, TimeVerdict};
use flashrig_report::judge::Slowdowns;
use flashrig_report::stats::{Looks, median, ratio};

const LIMITS: Thresholds = Thresholds {
    pass: 1.5,
    fail: 2.0,
};
const SEED: u64 = 11;
/// Above a threshold by so little that only the claim is on the other side.
const ABOVE: f64 = 1.0 + 1e-6;

/// How the walls of a made-up session scatter.
#[derive(Clone, Copy)]
enum Shape {
    /// Logarithms are normal.
    Normal,
    /// Student's t with 3 degrees of freedom, scaled to the same standard deviation.
    HeavyTails,
    /// One round of each run has one arm, either of both, 1.5 times slower.
    SlowRound,
    /// Half of a session's variance is the round's, the same for all sessions.
    Correlated,
    /// Every second session scatters by a quarter of the others.
    Unequal,
}

#[derive(Clone, Copy)]
struct Cell {
    sessions: usize,
    scatter: f64,
    shape: Shape,
}

/// The true slowdowns of a run's sessions.
#[derive(Clone, Copy)]
enum Truth {
    /// All the same.
    All(f64),
    /// One of them, the others are not slowed down.
    One(f64),
}

impl Truth {
    fn of(self, session: usize) -> f64 {
        match self {
            Self::All(x) => x,
            Self::One(x) if session == 0 => x,
            Self::One(_) => 1.0,
        }
    }

    fn largest(self) -> f64 {
        let (Self::All(x) | Self::One(x)) = self;
        x
    }
}

/// How many rounds are made.
#[derive(Clone, Copy)]
enum Rounds {
    Fixed(usize),
    Auto,
}

fn main() {
    // `cargo bench` adds an option of its own.
    let mut numbers = std::env::args().filter_map(|arg| arg.parse().ok());
    let runs: u32 = numbers.next().unwrap_or(20_000);
    println!("{runs} runs in each cell, seed {SEED}; walls scatter by the share given\n");
    wrong_claims(runs);
    decided(runs);
}

/// For each cell the share of runs with a wrong claim: the worst over truths at each threshold.
fn wrong_claims(runs: u32) {
    println!("### Wrong claims, % of runs, the worst over four truths at the thresholds\n");
    println!(
        "| scatter is | scatter | sessions | 2 rounds | 4 | 8 | auto | before: 4 | before: 8 |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut most: f64 = 0.0;
    for (name, shape) in SHAPES {
        for scatter in [0.02, 0.1, 0.3] {
            for sessions in [1, 2, 4, 8] {
                let cell = Cell {
                    sessions,
                    scatter,
                    shape,
                };
                let ways = [
                    Rounds::Fixed(2),
                    Rounds::Fixed(4),
                    Rounds::Fixed(8),
                    Rounds::Auto,
                ];
                let now = ways.map(|rounds| worst_share(cell, runs, rounds, judged));
                let before = [4, 8].map(|n| worst_share(cell, runs, Rounds::Fixed(n), before));
                most = now.iter().copied().fold(most, f64::max);
                let all: Vec<String> = now.iter().chain(&before).map(|s| percent(*s)).collect();
                println!("| {name} | {scatter} | {sessions} | {} |", all.join(" | "));
            }
        }
    }
    println!("\nThe most in any cell: {}%.\n", percent(most));
}

/// The share of runs in which something is proven, and the rounds that it took.
fn decided(runs: u32) {
    println!("### Decided, % of runs, two sessions\n");
    println!(
        "| true slowdown | scatter | 4 rounds: settled | and half | before: settled | auto: settled \
         | and half | rounds used |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for truth in [1.0, 1.25, 1.4, 1.6, 1.75, 1.9, 2.2, 2.5] {
        for scatter in [0.05, 0.1, 0.2] {
            let cell = Cell {
                sessions: 2,
                scatter,
                shape: Shape::Normal,
            };
            let truth_of = Truth::All(truth);
            let four = outcomes(cell, truth_of, runs, Rounds::Fixed(4), judged);
            let old = outcomes(cell, truth_of, runs, Rounds::Fixed(4), before);
            let auto = outcomes(cell, truth_of, runs, Rounds::Auto, judged);
            let used: usize = auto.iter().map(|(_, n)| n).sum();
            println!(
                "| {truth} | {scatter} | {} | {} | {} | {} | {} | {:.1} |",
                percent(share(&four, TimeVerdict::is_settled)),
                percent(share(&four, is_half)),
                percent(share(&old, TimeVerdict::is_settled)),
                percent(share(&auto, TimeVerdict::is_settled)),
                percent(share(&auto, is_half)),
                used as f64 / f64::from(runs)
            );
        }
    }
}

const SHAPES: [(&str, Shape); 5] = [
    ("normal", Shape::Normal),
    ("heavy-tailed", Shape::HeavyTails),
    ("normal, one slow round", Shape::SlowRound),
    ("correlated", Shape::Correlated),
    ("unequal", Shape::Unequal),
];

type Judge = fn(&[Vec<f64>], Looks) -> TimeVerdict;

/// The verdict as flashrig gives it.
fn judged(per_session: &[Vec<f64>], looks: Looks) -> TimeVerdict {
    let slowdowns = Slowdowns {
        per_session,
        looks,
        censored: false,
        limits: LIMITS,
    };
    slowdowns.verdict()
}

/// The verdict as flashrig gave it before.
fn before(per_session: &[Vec<f64>], _: Looks) -> TimeVerdict {
    let rounds = per_session[0].len();
    let largest = |round: usize| per_session.iter().map(|s| s[round]).fold(0.0, f64::max);
    let by_round: Vec<f64> = (0..rounds).map(largest).collect();
    let Some(value) = median(&by_round) else {
        return TimeVerdict::Unknown;
    };
    if let Some([low, high]) = ratio(&by_round).ci95
        && [LIMITS.pass, LIMITS.fail]
            .iter()
            .any(|t| low <= *t && *t < high)
    {
        return TimeVerdict::Inconclusive;
    }
    match value {
        v if v <= LIMITS.pass => TimeVerdict::Pass,
        v if v <= LIMITS.fail => TimeVerdict::Warn,
        _ => TimeVerdict::Fail,
    }
}

/// The worst share of wrong claims over truths at both sides of both thresholds.
fn worst_share(cell: Cell, runs: u32, rounds: Rounds, judge: Judge) -> f64 {
    let at_both_sides = |limit: f64| [Truth::All(limit), Truth::One(limit * ABOVE)];
    let mut most: f64 = 0.0;
    for limit in [LIMITS.pass, LIMITS.fail] {
        for truth in at_both_sides(limit) {
            let found = outcomes(cell, truth, runs, rounds, judge);
            let wrong = share(&found, |verdict| is_wrong(verdict, truth.largest(), limit));
            most = most.max(wrong);
        }
    }
    most
}

/// Whether a verdict claims something about one threshold that the true largest slowdown contradicts.
fn is_wrong(verdict: TimeVerdict, largest: f64, at: f64) -> bool {
    let (not_above, above) = match verdict {
        TimeVerdict::Pass => (Some(LIMITS.pass), None),
        TimeVerdict::PassOrWarn => (Some(LIMITS.fail), None),
        TimeVerdict::Warn => (Some(LIMITS.fail), Some(LIMITS.pass)),
        TimeVerdict::WarnOrFail => (None, Some(LIMITS.pass)),
        TimeVerdict::Fail => (None, Some(LIMITS.fail)),
        TimeVerdict::Inconclusive | TimeVerdict::Unknown | TimeVerdict::NotCompared => (None, None),
    };
    // A pass is a claim about the second threshold too, and a fail about the first.
    not_above.is_some_and(|limit| limit <= at && largest > at)
        || above.is_some_and(|limit| limit >= at && largest <= at)
}

fn is_half(verdict: TimeVerdict) -> bool {
    matches!(verdict, TimeVerdict::PassOrWarn | TimeVerdict::WarnOrFail)
}

fn share(found: &[(TimeVerdict, usize)], is: impl Fn(TimeVerdict) -> bool) -> f64 {
    let n = found.iter().filter(|(verdict, _)| is(*verdict)).count();
    n as f64 / found.len() as f64
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Verdict and rounds of every made-up run.
fn outcomes(
    cell: Cell,
    truth: Truth,
    runs: u32,
    rounds: Rounds,
    judge: Judge,
) -> Vec<(TimeVerdict, usize)> {
    let mut rng = Rng::with_seed(SEED);
    (0..runs)
        .map(|_| {
            let all = run(cell, truth, 12, &mut rng);
            let first =
                |n: usize| -> Vec<Vec<f64>> { all.iter().map(|s| s[..n].to_vec()).collect() };
            match rounds {
                Rounds::Fixed(n) => (judge(&first(n), Looks::Once), n),
                Rounds::Auto => {
                    let looks = [4, 6, 8, 10, 12].map(|n| (judge(&first(n), Looks::UpToFive), n));
                    let settled = looks.iter().find(|(verdict, _)| verdict.is_settled());
                    *settled.unwrap_or(&looks[4])
                }
            }
        })
        .collect()
}

/// Ratios of each session in each round.
fn run(cell: Cell, truth: Truth, rounds: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    // The standard deviation of a wall's logarithm; a ratio has two walls.
    let deviation = (1.0 + cell.scatter.powi(2)).ln().sqrt();
    let mut all = vec![Vec::with_capacity(rounds); cell.sessions];
    // Anywhere among the first four, so that every number of rounds may meet it.
    let slow = rng.usize(..4);
    for round in 0..rounds {
        let shared = normal(rng) - normal(rng);
        let disturbed = match cell.shape {
            Shape::SlowRound if round == slow => 1.5_f64.powi(if rng.bool() { 1 } else { -1 }),
            _ => 1.0,
        };
        for (session, ratios) in all.iter_mut().enumerate() {
            let own = match cell.shape {
                Shape::HeavyTails => student_3(rng) - student_3(rng),
                Shape::Correlated => {
                    (normal(rng) - normal(rng) + shared) * std::f64::consts::FRAC_1_SQRT_2
                }
                _ => normal(rng) - normal(rng),
            };
            let scale = match cell.shape {
                Shape::Unequal if session % 2 == 1 => 0.25,
                _ => 1.0,
            };
            ratios.push(truth.of(session) * disturbed * (own * scale * deviation).exp());
        }
    }
    all
}

/// Box and Muller's.
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Student's t with 3 degrees of freedom, with a variance of 1.
fn student_3(rng: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (squares / 3.0).sqrt() / 3.0_f64.sqrt()
}
