//! A line for each combination, over all rounds.

use std::collections::BTreeSet;

use crate::stats::{median, ratio};
use flashrig_clock::Seconds;
use flashrig_record::{
    FigureOf, Proven, Ratio, RowFault, RowFigure, RowProof, Sweep, SweepRow, Unit, UnitFailure,
    UnitFault, UnitOutcome, UnitServer,
};

/// A line for each combination, in the order of the plan.
pub fn rows(sweep: &Sweep) -> Vec<SweepRow> {
    let all: BTreeSet<FigureOf> = sweep
        .units
        .iter()
        .flat_map(|unit| unit.figures.iter().map(|figure| figure.of))
        .collect();
    let count = u32::try_from(sweep.spec.combinations.len()).unwrap_or(u32::MAX);
    (1..=count).map(|n| row(sweep, n, &all)).collect()
}

fn row(sweep: &Sweep, combination: u32, all: &BTreeSet<FigureOf>) -> SweepRow {
    let units: Vec<&Unit> = of(sweep, combination);
    let is_failed = |unit: &&&Unit| unit.outcome == UnitOutcome::Failed;
    let failed = units.iter().filter(is_failed).count();
    let servers: Vec<&UnitServer> = units.iter().filter_map(|u| u.server.as_ref()).collect();
    let memory = servers
        .iter()
        .filter_map(|s| Some((s.peak_memory_bytes?, s.peak_memory_by)))
        .max_by_key(|(bytes, _)| *bytes);
    let ready: Vec<f64> = servers
        .iter()
        .filter_map(|s| s.ready_after_s)
        .map(|s| s.0)
        .collect();
    let proofs: Vec<RowProof> = sweep
        .spec
        .settings
        .iter()
        .map(|setting| proof(&setting.name, &servers))
        .collect();
    let mut faults = of_units(&units);
    let idle = proofs.iter().filter(|p| p.proven == Proven::DidNothing);
    faults.extend(idle.map(|proof| RowFault::SettingDidNothing {
        name: proof.name.clone(),
        told: proof.reported.clone(),
        by: proof.by.clone(),
    }));
    faults.extend(another_server(&servers));
    SweepRow {
        combination,
        settings: sweep.spec.sets(combination),
        measured: u32::try_from(units.len() - failed).unwrap_or(u32::MAX),
        failed: u32::try_from(failed).unwrap_or(u32::MAX),
        figures: all
            .iter()
            .map(|of| figure(sweep, combination, *of))
            .collect(),
        peak_memory_bytes: memory.map(|(bytes, _)| bytes),
        peak_memory_by: memory.and_then(|(_, by)| by),
        ready_after_s: median(&ready).map(Seconds),
        proofs,
        faults,
    }
}

/// The units of a combination.
fn of(sweep: &Sweep, combination: u32) -> Vec<&Unit> {
    let units = sweep.units.iter();
    units.filter(|u| u.combination == combination).collect()
}

/// What is wrong with units, each once with its rounds.
fn of_units(units: &[&Unit]) -> Vec<RowFault> {
    let mut failures: Vec<(&UnitFailure, Vec<u32>)> = Vec::new();
    let mut faults: Vec<(&UnitFault, Vec<u32>)> = Vec::new();
    for unit in units {
        let failed = unit.outcome == UnitOutcome::Failed;
        for failure in unit.failure.iter().filter(|_| failed) {
            note(&mut failures, failure, unit.round);
        }
        for fault in &unit.faults {
            note(&mut faults, fault, unit.round);
        }
    }
    let failed = failures
        .into_iter()
        .map(|(failure, rounds)| RowFault::UnitFailed {
            rounds,
            failure: failure.clone(),
        });
    let faulty = faults
        .into_iter()
        .map(|(fault, rounds)| RowFault::UnitFault {
            rounds,
            fault: fault.clone(),
        });
    failed.chain(faulty).collect()
}

fn note<'u, F: PartialEq>(known: &mut Vec<(&'u F, Vec<u32>)>, fact: &'u F, round: u32) {
    match known.iter_mut().find(|(known, _)| *known == fact) {
        Some((_, rounds)) => rounds.push(round),
        None => known.push((fact, vec![round])),
    }
}

/// A figure's value in each round in which it is known, of units that were measured.
pub fn by_round(sweep: &Sweep, combination: u32, figure: FigureOf) -> Vec<(u32, f64)> {
    of(sweep, combination)
        .into_iter()
        .filter(|unit| unit.outcome == UnitOutcome::Measured)
        .filter_map(|unit| {
            let found = unit.figures.iter().find(|f| f.of == figure)?;
            Some((unit.round, found.value?))
        })
        .collect()
}

/// A figure of one combination over that of another, round by round.
pub fn paired(sweep: &Sweep, combination: u32, other: u32, figure: FigureOf) -> Vec<f64> {
    let others = by_round(sweep, other, figure);
    by_round(sweep, combination, figure)
        .into_iter()
        .filter_map(|(round, value)| {
            let (_, other) = others.iter().find(|(of, _)| *of == round)?;
            Some(value / other).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        })
        .collect()
}

fn figure(sweep: &Sweep, combination: u32, figure: FigureOf) -> RowFigure {
    let values = by_round(sweep, combination, figure);
    let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
    let units = of(sweep, combination);
    let is_sound = |unit: &&Unit| {
        let found = unit.figures.iter().find(|f| f.of == figure);
        unit.outcome == UnitOutcome::Measured && found.is_some_and(|f| f.sound)
    };
    RowFigure {
        of: figure,
        value: median(&values),
        sound: !units.is_empty() && units.iter().all(is_sound),
        of_first: if figure.kind.has_ratio() {
            let mut of_first = ratio(&paired(sweep, combination, 1, figure));
            // One over itself is 1 for certain, whatever the spread.
            of_first.ci95 = of_first.ci95.filter(|_| combination != 1);
            of_first
        } else {
            Ratio::default()
        },
    }
}

/// What all units know of one setting.
fn proof(name: &str, servers: &[&UnitServer]) -> RowProof {
    let plain = name.strip_prefix("sim.").unwrap_or(name);
    let found: Vec<_> = servers
        .iter()
        .map(|server| server.proofs.iter().find(|proof| proof.name == plain))
        .collect();
    let reported = |engaged: bool| {
        let mut reported = found
            .iter()
            .flatten()
            .filter(|p| p.engaged == Some(engaged));
        reported.next()
    };
    let all = !found.is_empty()
        && found
            .iter()
            .all(|p| p.is_some_and(|p| p.engaged == Some(true)));
    let (proven, other, proof) = match (reported(false), all) {
        (Some(proof), _) => (Proven::DidNothing, proof.reported.clone(), Some(proof)),
        (None, true) => (Proven::Proven, None, reported(true)),
        (None, false) => (Proven::NotProven, None, None),
    };
    RowProof {
        name: name.to_owned(),
        proven,
        reported: other,
        by: proof.and_then(|proof| proof.reported_by.clone()),
    }
}

/// A combination that was not answered by the same server in every round.
fn another_server(servers: &[&UnitServer]) -> Option<RowFault> {
    let first = servers.first()?;
    let parts = |server: &UnitServer| {
        [
            ("version", server.version.clone()),
            ("model", Some(server.model.clone())),
            ("program", server.program_sha256.clone()),
            ("model's file", server.model_sha256.clone()),
        ]
    };
    let other = servers.iter().find(|s| parts(s) != parts(first))?;
    let (first, other) = (parts(first), parts(other));
    let differs = first.into_iter().zip(other).find(|(a, b)| a != b)?;
    let ((what, was), (_, then)) = differs;
    Some(RowFault::OtherServer {
        what: what.to_owned(),
        was,
        then,
    })
}
