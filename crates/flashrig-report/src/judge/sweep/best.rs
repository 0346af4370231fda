//! The best combination, and how sure that is.

use super::message::{factor, figure_label, name_of, row_name};
use super::rows::paired;
use crate::stats::{lower_bound, ratio};
use flashrig_record::{
    FigureKind, FigureOf, NamedUnit, Proven, Ratio, RowFigure, Sweep, SweepRow, SweepVerdict,
    SweepWarning, Unit,
};

/// Units that a remark names.
const NAMED: usize = 4;
/// More rounds than this are not worth naming.
const MOST_ROUNDS: usize = 200;
/// From so many comparisons on it is said what many of them do to each.
const MANY: usize = 4;

/// Judges a sweep by what was measured.
pub fn verdict(sweep: &Sweep, rows: &[SweepRow]) -> SweepVerdict {
    let by = main_figure(sweep, rows);
    let candidates: Vec<(&SweepRow, f64)> = by.map_or_else(Vec::new, |by| {
        let known = rows.iter().filter_map(|row| Some((row, value(row, by)?)));
        known.collect()
    });
    let best = candidates.iter().copied().reduce(|best, other| {
        // The first of equal ones stays.
        if other.1 < best.1 { other } else { best }
    });
    let judged = by.zip(best).map(|(by, (best, _))| {
        let others: Vec<Beside> = candidates
            .iter()
            .filter(|(row, _)| row.combination != best.combination)
            .map(|(row, value)| Beside {
                row,
                value: *value,
                per_round: paired(sweep, row.combination, best.combination, by),
                comparisons: candidates.len() * (candidates.len() - 1),
            })
            .collect();
        Judged { best, by, others }
    });
    let open = unmeasured(sweep, rows);
    let (equals, needed, answer) = match &judged {
        judged if open > 0 => {
            let so_far = judged
                .as_ref()
                .and_then(|judged| judged.first_sentence(sweep));
            (Vec::new(), None, so_far_only(sweep, rows, open, so_far))
        }
        None => (Vec::new(), None, vec![nothing(sweep, rows)]),
        Some(judged) => (judged.equals(), judged.needed(), judged.answer(sweep, rows)),
    };
    SweepVerdict {
        by,
        best: best.filter(|_| open == 0).map(|(row, _)| row.combination),
        equals,
        rounds_needed: needed,
        answer,
        warnings: warnings(sweep, rows),
    }
}

/// How many combinations lack rounds without having failed: each of them may still be the best.
fn unmeasured(sweep: &Sweep, rows: &[SweepRow]) -> usize {
    let lacks = |row: &&SweepRow| row.failed == 0 && row.measured < sweep.spec.rounds;
    rows.iter().filter(lacks).count()
}

/// What is said while any combination lacks rounds.
fn so_far_only(
    sweep: &Sweep,
    rows: &[SweepRow],
    open: usize,
    so_far: Option<String>,
) -> Vec<String> {
    let measured: Vec<&SweepRow> = rows.iter().filter(|row| row.measured > 0).collect();
    let none = match measured.as_slice() {
        [] => "Nothing has been measured so far.".to_owned(),
        [only] => format!(
            "Only {} has been measured so far: there is no best combination yet.",
            row_name(sweep, only)
        ),
        _ => format!(
            "There is no best combination yet: {open} of {} combinations lack rounds.",
            rows.len()
        ),
    };
    let so_far = so_far.map(|message| format!("So far: {message}"));
    std::iter::once(none).chain(so_far).collect()
}

/// The figure that combinations are ranked by: the command's main one, at the largest size that
/// any of them serves as asked.
fn main_figure(sweep: &Sweep, rows: &[SweepRow]) -> Option<FigureOf> {
    let kind = match sweep.spec.measures.as_str() {
        "pair" => FigureKind::TogetherS,
        "fit" => FigureKind::WarmTurnS,
        _ => FigureKind::TtftMedianS,
    };
    let of_kind = |row: &SweepRow| {
        let figures = row.figures.iter().filter(|f| f.of.kind == kind);
        figures.map(|f| f.of).collect::<Vec<_>>()
    };
    let served = rows
        .iter()
        .flat_map(|row| of_kind(row).into_iter().map(move |of| (row, of)))
        .filter(|(row, of)| value(row, *of).is_some());
    served.map(|(_, of)| of).max()
}

/// A figure of a combination that may be the best.
fn value(row: &SweepRow, by: FigureOf) -> Option<f64> {
    let did_something = row.proofs.iter().all(|p| p.proven != Proven::DidNothing);
    let found = row.figures.iter().find(|figure| figure.of == by)?;
    let may = row.failed == 0 && did_something && found.sound;
    found.value.filter(|_| may)
}

/// Another combination beside the best one.
struct Beside<'r> {
    row: &'r SweepRow,
    value: f64,
    /// How many times as fast the best is, round by round.
    per_round: Vec<f64>,
    /// Claims that could have been made: any combination may come out best, beside any other.
    comparisons: usize,
}

impl Beside<'_> {
    fn ratio(&self) -> Ratio {
        ratio(&self.per_round)
    }

    /// Whether the best is better, with 95% confidence over all comparisons.
    fn is_distinct(&self) -> bool {
        self.is_distinct_after(self.per_round.len())
    }

    fn is_distinct_after(&self, rounds: usize) -> bool {
        lower_bound(&self.per_round, rounds, self.comparisons).is_some_and(|low| low > 1.0)
    }

    /// Rounds in all that would tell it apart from the best, if mean and scatter stayed as they are.
    fn needed(&self) -> Option<u32> {
        let found = (self.per_round.len()..=MOST_ROUNDS).find(|n| self.is_distinct_after(*n));
        found.and_then(|n| u32::try_from(n).ok())
    }
}

struct Judged<'r> {
    best: &'r SweepRow,
    by: FigureOf,
    others: Vec<Beside<'r>>,
}

impl Judged<'_> {
    fn unreported(&self) -> impl Iterator<Item = &Beside<'_>> {
        self.others.iter().filter(|other| !other.is_distinct())
    }

    fn equals(&self) -> Vec<u32> {
        self.unreported()
            .map(|other| other.row.combination)
            .collect()
    }

    /// What tells the best from all that it is not told apart from.
    fn needed(&self) -> Option<u32> {
        let needed: Option<Vec<u32>> = self.unreported().map(Beside::needed).collect();
        needed?.into_iter().max()
    }

    /// The first combination, or the next best when the first is the best.
    fn beside(&self) -> Option<&Beside<'_>> {
        let others = || self.others.iter();
        let first = others().find(|other| other.row.combination == 1);
        first.or_else(|| others().min_by(|a, b| a.value.total_cmp(&b.value)))
    }

    fn first_sentence(&self, sweep: &Sweep) -> Option<String> {
        let beside = self.beside()?;
        let (best, other) = (row_name(sweep, self.best), row_name(sweep, beside.row));
        Some(sentence(&best, &other, beside, &figure_label(self.by)))
    }

    fn answer(&self, sweep: &Sweep, rows: &[SweepRow]) -> Vec<String> {
        let name = |row: &SweepRow| row_name(sweep, row);
        let best = name(self.best);
        let by = figure_label(self.by);
        if self.others.is_empty() {
            let others = rows.len() - 1;
            return vec![format!(
                "{best} is the only one of {} combinations that did all that was asked ({by}).",
                others + 1
            )];
        }
        let Some(beside) = self.beside() else {
            return Vec::new();
        };
        let mut answer: Vec<String> = self.first_sentence(sweep).into_iter().collect();
        let rest: Vec<&Beside> = self
            .unreported()
            .filter(|other| other.row.combination != beside.row.combination)
            .collect();
        // One round tells nothing apart, and the sentence above has said so.
        if !rest.is_empty() && beside.ratio().ci95.is_some() {
            let names: Vec<String> = rest.iter().map(|other| name(other.row)).collect();
            let needed: Option<Vec<u32>> = rest.iter().map(|other| other.needed()).collect();
            let needed = needed.and_then(|all| all.into_iter().max());
            answer.push(format!(
                "{best} cannot be told apart from {}{}.",
                in_a_row(&names),
                more_rounds(needed)
            ));
        }
        answer
    }
}

fn in_a_row(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("[{name}]"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn sentence(best: &str, other: &str, beside: &Beside, by: &str) -> String {
    let times = beside.ratio().value;
    let times = times.map_or_else(|| "an unknown number of".to_owned(), factor);
    let n = beside.ratio().n;
    match beside.ratio().ci95 {
        Some([low, high]) if beside.is_distinct() => format!(
            "{best} is {times} times as fast as {other} by {by} ({} to {}, {n} rounds).",
            factor(low),
            factor(high)
        ),
        Some([low, high]) => format!(
            "{best} had the best {by}, but cannot be told apart from {other}{}: {times} times as fast \
             ({} to {}, {n} rounds){}.",
            if low > 1.0 {
                " when all comparisons count"
            } else {
                ""
            },
            factor(low),
            factor(high),
            more_rounds(beside.needed())
        ),
        None if n == 0 => format!(
            "{best} had the best {by}, but it cannot be compared with {other}: no round measured both."
        ),
        None => {
            format!("{best} was {times} times as fast as {other} by {by} (one round, no interval).")
        }
    }
}

fn more_rounds(needed: Option<u32>) -> String {
    match needed {
        Some(rounds) => {
            format!("; {rounds} rounds in all would tell, if the spread stays as it is")
        }
        None => "; more rounds would hardly tell".to_owned(),
    }
}

fn nothing(sweep: &Sweep, rows: &[SweepRow]) -> String {
    if super::measured(sweep) == 0 {
        "Nothing could be measured.".to_owned()
    } else if rows.iter().all(|row| row.measured == 0 || row.failed > 0) {
        "There is no best combination: every one failed at least once.".to_owned()
    } else {
        "There is no best combination: none did all that was asked of it.".to_owned()
    }
}

fn warnings(sweep: &Sweep, rows: &[SweepRow]) -> Vec<SweepWarning> {
    let mut warnings = Vec::new();
    if sweep.spec.rounds == 1 {
        warnings.push(SweepWarning::OneRound);
    }
    let compared = |row: &&SweepRow| {
        let ratios = row.figures.iter().map(|f: &RowFigure| f.of_first.ci95);
        row.combination != 1 && ratios.flatten().next().is_some()
    };
    let comparisons = rows.iter().filter(compared).count();
    if comparisons >= MANY {
        #[expect(clippy::cast_precision_loss, reason = "at most a few hundred")]
        let by_chance = comparisons as f64 * 0.05;
        warnings.push(SweepWarning::ManyComparisons {
            comparisons: comparisons as u64,
            by_chance,
        });
    }
    warnings.extend(bottlenecks(sweep));
    let units = sweep.cut_short.len() as u64;
    warnings.extend((units > 0).then_some(SweepWarning::CutShort { units }));
    let times = sweep.resumed;
    warnings.extend((times > 0).then_some(SweepWarning::Resumed { times }));
    warnings
}

/// Units whose figures are those of flashrig's own client, by name.
fn bottlenecks(sweep: &Sweep) -> Option<SweepWarning> {
    let is_bottleneck = |unit: &&Unit| unit.client_bottleneck == Some(true);
    let units: Vec<&Unit> = sweep.units.iter().filter(is_bottleneck).collect();
    let named = units.iter().take(NAMED).map(|unit| NamedUnit {
        settings: name_of(sweep, unit.combination),
        round: unit.round,
    });
    (!units.is_empty()).then(|| SweepWarning::ClientBottleneck {
        units: named.collect(),
        more: units.len().saturating_sub(NAMED) as u64,
        of: sweep.units.len() as u64,
    })
}
