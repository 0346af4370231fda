//! What was seen of the server, as every report shows it: how busy it was, what memory it took,
//! refusals in both sides' words, and where its sources contradict each other.

use super::figures::{arms, bytes, count, float, part, seconds, shown_rounds};
use super::page::Page;
use super::table::Table;
use crate::stats::median;
use flashrig_config::plural;
use flashrig_record::{Arm, ArmKind, IdleBy, JoinedRefusal, LoadRun, Measured, Run, Watched};

/// Refusals that are shown; the record has more.
const SHOWN: usize = 6;
/// Characters shown of either side's words.
const WORDS: usize = 160;

/// An arm in all shown rounds.
type InRounds<'r> = (&'static str, Vec<&'r Arm>);

/// The paragraph of `pair`.
pub fn of_pair(run: &Run, page: &mut Page) {
    let rows: Vec<InRounds> = [
        (ArmKind::BackToBack, "alone"),
        (ArmKind::BackToBackAgain, "again"),
        (ArmKind::Together, "together"),
        (ArmKind::Gated, "gated"),
    ]
    .into_iter()
    .map(|(kind, name)| (name, arms(run, kind)))
    .filter(|(_, arms)| arms.iter().any(|arm| arm.watched.is_some()))
    .collect();
    table(&rows, page);
    let shown = shown_rounds(run).len() > 1;
    let seen = run.rounds.iter().flat_map(|round| {
        round.arms.iter().filter_map(move |arm| {
            let arm_name = match arm.kind {
                ArmKind::BackToBack => "alone",
                ArmKind::BackToBackAgain => "again",
                kind => kind.label(),
            };
            let label = if shown {
                format!("{arm_name}, round {}", round.index)
            } else {
                arm_name.to_owned()
            };
            Some((label, &**arm.watched.as_ref()?))
        })
    });
    reported(&seen.collect::<Vec<_>>(), page);
    let all = run.rounds.iter().flat_map(|round| &round.arms);
    quiet(all.filter_map(|arm| arm.idle_by), "arms", page);
}

fn table(rows: &[InRounds], page: &mut Page) {
    let of = |(_, arms): &InRounds, figure: fn(&Watched) -> Option<f64>| {
        let reported = arms.iter().filter_map(|arm| figure(arm.watched.as_ref()?));
        reported.reduce(f64::max)
    };
    let table = Table::new(rows)
        .name("arm", |(name, _)| (*name).to_owned())
        .known("waiting in all", 0, |(_, arms)| {
            let waited: Vec<f64> = arms.iter().filter_map(|arm| waiting(arm)).collect();
            seconds(median(&waited))
        });
    let table = table
        .known("most at work", 1, |row| {
            count(of(row, |w| w.max_running.filter(|_| seen_at_work(w))))
        })
        .known("most in queue", 1, |row| {
            count(of(row, |w| w.max_waiting.filter(|_| seen_at_work(w))))
        })
        .known("memory", 2, |row| {
            bytes(of(row, |w| float(w.peak_memory_bytes)))
        })
        .known("process memory", 2, |row| {
            bytes(of(row, |w| float(w.peak_rss_bytes)))
        })
        .known("CPU", 3, |row| seconds(of(row, |w| w.cpu_s.map(|s| s.0))));
    page.section("What was seen of the server", &table);
}

/// Whether a reading fell into the time of a request. Where none did, the counts of 0 say nothing.
fn seen_at_work(watched: &Watched) -> bool {
    watched.max_running.is_none_or(|most| most > 0.0)
        || watched.max_waiting.is_some_and(|most| most > 0.0)
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
pub fn of_load(run: &LoadRun, label: impl Fn(&Measured) -> String, page: &mut Page) {
    let seen = run.measured.iter().filter_map(|measured| {
        let watched = &**measured.watched.as_ref()?;
        let label = if run.spec.rounds > 1 {
            format!("{}, round {}", label(measured), measured.round)
        } else {
            label(measured)
        };
        Some((label, watched))
    });
    reported(&seen.collect::<Vec<_>>(), page);
    let idle = run.measured.iter().filter_map(|measured| measured.idle_by);
    quiet(idle, "measurements", page);
}

/// The largest that was seen in these combinations.
pub fn most<'m>(
    measured: impl Iterator<Item = &'m Measured>,
    figure: impl Fn(&Watched) -> Option<f64>,
) -> Option<f64> {
    let reported = measured.filter_map(|m| figure(m.watched.as_ref()?));
    reported.reduce(f64::max)
}

/// The most memory of the server's processes; a dash when unknown.
pub fn process_memory<'m>(measured: impl Iterator<Item = &'m Measured>) -> String {
    bytes(most(measured, |w| float(w.peak_rss_bytes)))
}

/// Refusals, contradictions and losses, each with its arm or combination.
fn reported(seen: &[(String, &Watched)], page: &mut Page) {
    let refusals = seen.iter().flat_map(|(label, watched)| {
        let has_log = watched.refused.log.is_some();
        let all = watched.refusals.iter();
        all.map(move |one| format!("{label}: {}", refusal(one, has_log)))
    });
    let mut refusals: Vec<String> = refusals.collect();
    if let Some(more) = refusals.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        refusals.truncate(SHOWN);
        refusals.push(format!("and {more} more, in the record"));
    }
    page.items("Refused, in the words of both sides", refusals);
    for (label, watched) in seen {
        let lost = Some(watched.lost_lines).filter(|lost| *lost > 0);
        let lost =
            lost.map(|lost| format!("{} of the server's log were lost", plural(lost, "line")));
        let disagreements = watched.disagreements.iter().map(ToString::to_string);
        page.notes(
            disagreements
                .chain(lost)
                .map(|text| format!("{label}: {text}")),
        );
    }
}

fn refusal(one: &JoinedRefusal, has_log: bool) -> String {
    let log = one.log.as_deref().map(quoted);
    let Some(session) = &one.session else {
        let line = log.unwrap_or_default();
        return format!("no client saw what the log says: {line}");
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

fn quiet(by: impl Iterator<Item = IdleBy>, between: &str, page: &mut Page) {
    if by.max() == Some(IdleBy::Quiet) {
        page.line(&format!(
            "Between {between} flashrig left the server alone for a second: neither its metrics nor \
             its slots say whether it is idle."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::View;
    use flashrig_clock::Seconds;
    use flashrig_record::ThreeWays;

    fn said(watched: &Watched) -> String {
        let mut page = Page::new(View::new(Some(200), false));
        reported(&[("2 at once".to_owned(), watched)], &mut page);
        page.text()
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
        let said = |rows: &[InRounds]| {
            let mut page = Page::new(View::default());
            table(rows, &mut page);
            page.text()
        };
        let text = said(&[("alone", vec![&alone]), ("together", vec![&together])]);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|c| !c.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(lines[1], ["arm", "most in queue", "process memory"]);
        assert_eq!(lines[2], ["alone", "–", "127 MB"]);
        assert_eq!(lines[3], ["together", "3", "127 MB"]);
        let nothing = Arm::unmeasured(ArmKind::Together);
        assert_eq!(said(&[("together", vec![&nothing])]), "");
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
        assert!(said.contains("no client saw what the log says: “rejecting”"));
        assert!(said.ends_with("and 3 more, in the record\n"), "{said}");
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
            "  note: 2 at once: cached prompt tokens differ by 9\n  note: 2 at once: 1,234 lines of \
             the server's log were lost\n"
        );
    }
}
