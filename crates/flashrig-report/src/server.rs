//! What was seen of the server, as every report shows it: how busy it was, what memory it took,
//! refusals in both sides' words, and where its sources contradict each other.

use std::fmt::Write as _;

use super::figures::{arms, count, part, seconds, shown_rounds};
use super::text::new_table;
use crate::stats::median;
use flashrig_record::{Arm, ArmKind, IdleBy, JoinedRefusal, LoadRun, Measured, Run, Watched};

/// Refusals that are shown; the record has more.
const SHOWN: usize = 6;
/// Characters shown of either side's words.
const WORDS: usize = 160;

/// The paragraph of `pair`.
pub fn of_pair(run: &Run, out: &mut String) {
    let rows: Vec<(&str, Vec<&Arm>)> = [
        (ArmKind::BackToBack, "alone"),
        (ArmKind::Together, "together"),
        (ArmKind::Gated, "gated"),
    ]
    .into_iter()
    .map(|(kind, name)| (name, arms(run, kind)))
    .filter(|(_, arms)| arms.iter().any(|arm| arm.watched.is_some()))
    .collect();
    table(&rows, out);
    let shown = shown_rounds(run).len() > 1;
    let seen = run.rounds.iter().flat_map(|round| {
        round.arms.iter().filter_map(move |arm| {
            let message = match arm.kind {
                ArmKind::BackToBack => "alone",
                kind => kind.label(),
            };
            let label = if shown {
                format!("{message}, round {}", round.index)
            } else {
                message.to_owned()
            };
            Some((label, &**arm.watched.as_ref()?))
        })
    });
    reported(&seen.collect::<Vec<_>>(), out);
    let all = run.rounds.iter().flat_map(|round| &round.arms);
    quiet(all.filter_map(|arm| arm.idle_by), "arms", out);
}

fn table(rows: &[(&str, Vec<&Arm>)], out: &mut String) {
    let of = |arms: &[&Arm], figure: fn(&Watched) -> Option<f64>| {
        let reported = arms.iter().filter_map(|arm| figure(arm.watched.as_ref()?));
        reported.reduce(f64::max)
    };
    type Column = (&'static str, fn(&Watched) -> Option<f64>, fn(f64) -> String);
    let columns: [Column; 5] = [
        ("most at work", |w| w.max_running, |n| count(Some(n))),
        ("most in line", |w| w.max_waiting, |n| count(Some(n))),
        ("memory", |w| float(w.peak_memory_bytes), size),
        ("process memory", |w| float(w.peak_rss_bytes), size),
        ("CPU", |w| w.cpu_s.map(|s| s.0), |s| seconds(Some(s))),
    ];
    let known: Vec<&Column> = columns
        .iter()
        .filter(|(_, figure, _)| rows.iter().any(|(_, arms)| of(arms, *figure).is_some()))
        .collect();
    if known.is_empty() {
        return;
    }
    let mut head = vec!["arm", "waiting in all"];
    head.extend(known.iter().map(|(name, ..)| *name));
    let mut table = new_table(&head, 1, &[]);
    for (name, arms) in rows {
        let waited: Vec<f64> = arms.iter().filter_map(|arm| waiting(arm)).collect();
        let mut cells = vec![(*name).to_owned(), seconds(median(&waited))];
        cells.extend(
            known
                .iter()
                .map(|(_, figure, shown)| of(arms, *figure).map_or_else(|| "–".to_owned(), shown)),
        );
        table.add_row(cells);
    }
    let _ = writeln!(out, "What was seen of the server\n{table}\n");
}

/// What all sessions of an arm waited for first tokens, added up.
fn waiting(arm: &Arm) -> Option<f64> {
    let each: Option<Vec<f64>> = arm
        .sessions
        .iter()
        .map(|session| part(&[session], |split| split.waiting_s.0))
        .collect();
    each.filter(|each| !each.is_empty())
        .map(|each| each.iter().sum())
}

/// What a run of `fit` or `ttft` has to say beside its tables. `label` names a combination.
pub fn of_load(run: &LoadRun, label: impl Fn(&Measured) -> String, out: &mut String) {
    let seen = run.measured.iter().filter_map(|measured| {
        let watched = &**measured.watched.as_ref()?;
        let label = if run.spec.rounds > 1 {
            format!("{}, round {}", label(measured), measured.round)
        } else {
            label(measured)
        };
        Some((label, watched))
    });
    reported(&seen.collect::<Vec<_>>(), out);
    quiet(
        run.measured.iter().filter_map(|measured| measured.idle_by),
        "measurements",
        out,
    );
}

/// The largest that was seen in these combinations.
pub fn most<'m>(
    measured: impl Iterator<Item = &'m Measured>,
    figure: impl Fn(&Watched) -> Option<f64>,
) -> Option<f64> {
    let reported = measured.filter_map(|m| figure(m.watched.as_ref()?));
    reported.reduce(f64::max)
}

/// The most memory of the server's processes, in words; a dash when unknown.
pub fn process_memory<'m>(measured: impl Iterator<Item = &'m Measured>) -> String {
    most(measured, |w| float(w.peak_rss_bytes)).map_or_else(|| "–".to_owned(), size)
}

/// Refusals, contradictions and losses, each with its arm or combination.
fn reported(seen: &[(String, &Watched)], out: &mut String) {
    let refusals: Vec<(&str, &Watched, &JoinedRefusal)> = seen
        .iter()
        .flat_map(|(label, watched)| {
            let all = watched.refusals.iter();
            all.map(|one| (label.as_str(), *watched, one))
        })
        .collect();
    if !refusals.is_empty() {
        let _ = writeln!(out, "Refused, in the words of both sides");
    }
    for (label, watched, one) in refusals.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "  {label}: {}",
            refusal(one, watched.refused.log.is_some())
        );
    }
    if let Some(more) = refusals.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more, which the record has");
    }
    for (label, watched) in seen {
        for message in &watched.disagreements {
            let _ = writeln!(out, "  mind: {label}: {message}");
        }
        if watched.lost_lines > 0 {
            let lost = count(float(Some(watched.lost_lines)));
            let _ = writeln!(
                out,
                "  mind: {label}: {lost} lines of the server's log were lost"
            );
        }
    }
}

fn refusal(one: &JoinedRefusal, has_log: bool) -> String {
    let log = one.log.as_deref().map(quoted);
    let Some(session) = &one.session else {
        let line = log.unwrap_or_default();
        return format!("no client, though the log says {line}");
    };
    let request = one
        .request
        .map_or_else(String::new, |number| format!("'s request {number}"));
    let status = one
        .status
        .map_or_else(String::new, |status| format!(" {status}"));
    let answer = one.answer.as_deref().map(quoted);
    let answer = answer.map_or_else(String::new, |message| format!(" {message}"));
    let log = match log {
        Some(line) => format!("; its log: {line}"),
        None if has_log => "; no line of its log tells of that".to_owned(),
        None => String::new(),
    };
    format!("{session}{request} was answered{status}{answer}{log}")
}

/// On one line, without what drives a terminal.
fn quoted(message: &str) -> String {
    let line: Vec<&str> = message.split_whitespace().collect();
    let line = line.join(" ").replace(char::is_control, "\u{fffd}");
    let cut: String = line.chars().take(WORDS).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("“{cut}{more}”")
}

fn quiet(by: impl Iterator<Item = IdleBy>, between: &str, out: &mut String) {
    if by.max() == Some(IdleBy::Quiet) {
        let _ = writeln!(
            out,
            "Between {between} the server was left alone for a second: it tells neither in metrics \
             nor by its slots whether it is idle."
        );
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and counts far below 2^53"
)]
fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn size(bytes: f64) -> String {
    if bytes < 1e9 {
        format!("{:.0} MB", bytes / 1e6)
    } else {
        format!("{:.1} GB", bytes / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_clock::Seconds;
    use flashrig_record::ThreeWays;

    fn said(watched: &Watched) -> String {
        let mut out = String::new();
        reported(&[("2 at once".to_owned(), watched)], &mut out);
        out
    }

    fn refused(log: Option<&str>) -> JoinedRefusal {
        JoinedRefusal {
            session: Some("s2".to_owned()),
            request: Some(1),
            at_s: Seconds(3.0),
            status: Some(400),
            answer: Some("no\nroom \u{1b}[31m".to_owned()),
            log: log.map(str::to_owned),
        }
    }

    #[test]
    fn a_refusal_has_the_words_of_both_sides() {
        let mut watched = Watched {
            refusals: vec![refused(Some("rejecting 12 tokens"))],
            ..Watched::default()
        };
        assert_eq!(
            said(&watched),
            "Refused, in the words of both sides\n  2 at once: s2's request 1 was answered 400 \
             “no room \u{fffd}[31m”; its log: “rejecting 12 tokens”\n"
        );
        watched.refusals = vec![refused(None)];
        assert!(!said(&watched).contains("log"), "nobody reads a log");
        watched.refused = ThreeWays {
            log: Some(0),
            ..ThreeWays::default()
        };
        assert!(said(&watched).contains("no line of its log tells of that"));
    }

    #[test]
    fn the_table_has_a_column_for_what_is_known_and_a_dash_for_what_one_arm_lacks() {
        let arm = |max_waiting| Arm {
            watched: Some(Box::new(Watched {
                max_waiting,
                peak_rss_bytes: Some(127_000_000),
                ..Watched::default()
            })),
            ..Arm::unmeasured(ArmKind::Together)
        };
        let (alone, together) = (arm(None), arm(Some(3.0)));
        let mut out = String::new();
        table(
            &[("alone", vec![&alone]), ("together", vec![&together])],
            &mut out,
        );
        let lines: Vec<Vec<&str>> = out
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|c| !c.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(
            lines[1],
            ["arm", "waiting in all", "most in line", "process memory"]
        );
        assert_eq!(lines[2], ["alone", "–", "–", "127 MB"]);
        assert_eq!(lines[3], ["together", "–", "3", "127 MB"]);
        let (nothing, mut out) = (Arm::unmeasured(ArmKind::Together), String::new());
        table(&[("together", vec![&nothing])], &mut out);
        assert_eq!(out, "");
    }

    #[test]
    fn a_line_without_a_client_is_said_to_have_none_and_many_refusals_are_not_all_shown() {
        let alone = JoinedRefusal {
            session: None,
            ..refused(Some("rejecting"))
        };
        let watched = Watched {
            refusals: vec![alone; 9],
            ..Watched::default()
        };
        let said = said(&watched);
        assert!(said.contains("no client, though the log says “rejecting”"));
        assert!(
            said.ends_with("and 3 more, which the record has\n"),
            "{said}"
        );
    }

    #[test]
    fn contradictions_and_losses_are_warned_of_and_agreement_is_not_mentioned() {
        assert_eq!(said(&Watched::default()), "");
        let watched = Watched {
            disagreements: vec![flashrig_record::testing::said(
                "cached prompt tokens differ by 9",
            )],
            lost_lines: 1234,
            ..Watched::default()
        };
        assert_eq!(
            said(&watched),
            "  mind: 2 at once: cached prompt tokens differ by 9\n  mind: 2 at once: 1,234 lines of \
             the server's log were lost\n"
        );
    }
}
