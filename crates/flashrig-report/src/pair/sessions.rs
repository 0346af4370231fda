//! The tables of sessions. Where there are many, those of one task and agent share a row; one that
//! is not done always has a row of its own.

use crate::figures::{bytes, count, float, interval, middle, part, percent, seconds, sessions};
use crate::figures::{share, times, unknown};
use crate::stats::median;
use crate::table::Table;
use crate::view::View;
use flashrig_record::{ArmKind, Run, Session, SessionSpec, Split, Status, Verdict};

/// Up to this many sessions have a row each.
const MANY: usize = 6;

/// The sessions of one row.
#[derive(Clone)]
pub struct Row<'r> {
    run: &'r Run,
    ids: Vec<&'r str>,
    name: String,
    agent: String,
}

/// A row in one of the arms.
pub struct InArm<'r> {
    row: Row<'r>,
    name: String,
    arm: ArmKind,
}

/// All rows.
pub struct Rows<'r> {
    run: &'r Run,
    rows: Vec<Row<'r>>,
    in_arms: Vec<InArm<'r>>,
}

impl<'r> Rows<'r> {
    /// One for each session; where there are many, one for those of the same task and agent.
    pub fn of(run: &'r Run, view: View) -> Self {
        let specs = &run.spec.sessions;
        let folds = specs.len() > MANY && !view.wide;
        let may_fold = |spec: &SessionSpec| folds && Went::of(run, &spec.id).is_done();
        let mut groups: Vec<Vec<&SessionSpec>> = Vec::new();
        for spec in specs {
            let alike = |first: &SessionSpec| {
                (&first.task, &first.agent) == (&spec.task, &spec.agent)
                    && may_fold(first)
                    && may_fold(spec)
            };
            match groups.iter_mut().find(|group| alike(group[0])) {
                Some(group) => group.push(spec),
                None => groups.push(vec![spec]),
            }
        }
        let rows: Vec<Row> = groups.iter().map(|group| Row::of(run, group)).collect();
        let in_arms = rows.iter().flat_map(Row::in_arms).collect();
        Self { run, rows, in_arms }
    }

    /// How long each took, and what came of it.
    pub fn summary(&self, verdict: &Verdict) -> Table<'_, Row<'r>> {
        let of = |id: &str| verdict.sessions.iter().find(|s| s.id == id);
        let table = Table::new(&self.rows)
            .name("session", |row| row.name.clone())
            .words("agent", 2, |row| row.agent.clone())
            .figure("alone", 0, |row| row.walls(ArmKind::BackToBack));
        let itself = verdict.against_itself.as_ref();
        let ratio = move |id: &str| match itself {
            Some(judged) => judged.sessions.iter().find(|s| s.id == id).map(|s| s.ratio),
            None => of(id).map(|s| s.slowdown),
        };
        let (beside, name, ratio_name) = match itself {
            Some(_) => (ArmKind::BackToBackAgain, "again", "ratio"),
            None => (ArmKind::Together, "together", "slowdown"),
        };
        let table = table
            .figure(name, 0, move |row| row.walls(beside))
            .figure(ratio_name, 0, move |row| {
                row.spread(times, |id| ratio(id)?.value)
            })
            .known("95%", 1, move |row| match row.ids.as_slice() {
                [id] => interval(ratio(id).and_then(|r| r.ci95)),
                _ => unknown(),
            });
        let table = match self.run.spec.gate {
            Some(_) => table.figure("gated", 0, |row| row.walls(ArmKind::Gated)),
            None => table,
        };
        table.words("result", 0, Row::result)
    }

    /// The parts of each wall.
    pub fn time(&self) -> Table<'_, InArm<'r>> {
        let of = |at: &InArm, of: fn(&Split) -> f64| seconds(at.middle(|s| part(s, of)));
        let table = self
            .arms()
            .known("startup", 3, |at| of(at, |s| s.startup_s.0));
        let table = match self.run.spec.gate {
            Some(_) => table.known("gate", 0, |at| of(at, |s| s.gate_s.0)),
            None => table,
        };
        table
            .known("waiting", 0, |at| of(at, |s| s.waiting_s.0))
            .known("decoding", 0, |at| of(at, |s| s.decoding_s.0))
            .known("between", 1, |at| of(at, |s| s.between_s.0))
            .known("back-off", 2, |at| of(at, |s| s.backoff_s.0))
            .known("exit", 4, |at| of(at, |s| s.exit_s.0))
    }

    /// Requests, tokens, processor and memory.
    pub fn work(&self) -> Table<'_, InArm<'r>> {
        let of = |at: &InArm, of: fn(&Session) -> Option<f64>| at.middle(|all| middle(all, of));
        self.arms()
            .known("requests", 0, |at| {
                count(of(at, |s| float(Some(s.requests))))
            })
            .known("side", 2, |at| {
                count(of(at, |s| float(Some(s.side_requests))))
            })
            .known("tokens in", 0, |at| {
                count(of(at, |s| float(s.input_tokens)))
            })
            .known("cached", 0, |at| {
                percent(of(at, |s| share(s.cached_tokens, s.input_tokens)))
            })
            .known("tokens out", 0, |at| {
                count(of(at, |s| float(s.output_tokens)))
            })
            .known("CPU", 1, |at| seconds(of(at, |s| s.cpu_s.map(|c| c.0))))
            .known("memory", 1, |at| bytes(of(at, |s| float(s.peak_rss_bytes))))
    }

    fn arms(&self) -> Table<'_, InArm<'r>> {
        Table::new(&self.in_arms)
            .name("session", |at| at.name.clone())
            .name("arm", |at| match at.arm {
                ArmKind::BackToBack => "alone".to_owned(),
                ArmKind::BackToBackAgain => "again".to_owned(),
                arm => arm.label().to_owned(),
            })
    }
}

impl<'r> Row<'r> {
    fn of(run: &'r Run, group: &[&'r SessionSpec]) -> Self {
        let (first, n) = (group[0], group.len());
        let agent = &first.agent;
        let version = agent.version.as_deref().unwrap_or("");
        let name = match n {
            1 => first.id.clone(),
            n => format!("{} · {} ×{n}", first.task, agent.name),
        };
        Self {
            run,
            ids: group.iter().map(|spec| spec.id.as_str()).collect(),
            name,
            agent: format!("{} {version}", agent.name).trim_end().to_owned(),
        }
    }

    fn in_arms(&self) -> Vec<InArm<'r>> {
        let gated = self.run.spec.gate.map(|_| ArmKind::Gated);
        let beside = match self.run.spec.against_itself {
            true => ArmKind::BackToBackAgain,
            false => ArmKind::Together,
        };
        let all = [ArmKind::BackToBack, beside];
        let arms = all.into_iter().chain(gated).enumerate();
        arms.map(|(index, arm)| InArm {
            row: self.clone(),
            // Said once for all arms.
            name: self.name.clone().repeat(usize::from(index == 0)),
            arm,
        })
        .collect()
    }

    fn walls(&self, arm: ArmKind) -> String {
        self.spread(seconds, |id| {
            middle(&sessions(self.run, arm, id), |s| s.wall_s.map(|w| w.0))
        })
    }

    /// A figure of one session; of several the median and the range, `38.1 s (33.0 to 51.2)`.
    fn spread(
        &self,
        shown: impl Fn(Option<f64>) -> String,
        of: impl Fn(&str) -> Option<f64>,
    ) -> String {
        let values: Option<Vec<f64>> = self.ids.iter().map(|id| of(id)).collect();
        let middle = values.as_deref().and_then(median);
        let low = values.iter().flatten().copied().reduce(f64::min);
        let high = values.iter().flatten().copied().reduce(f64::max);
        if self.ids.len() < 2 || middle.is_none() {
            return shown(middle);
        }
        let [middle, low, high] = [middle, low, high].map(shown);
        let unit = [" ms", " s", "x"]
            .into_iter()
            .find(|unit| [&low, &high].iter().all(|end| is_in(end, unit)));
        let bare = |text: &str| text.trim_end_matches(unit.unwrap_or("")).to_owned();
        format!("{middle} ({} to {})", bare(&low), bare(&high))
    }

    fn result(&self) -> String {
        match self.ids.as_slice() {
            [id] => Went::of(self.run, id).label(),
            _ => "done".to_owned(),
        }
    }
}

/// Whether a figure is a plain number of this unit.
fn is_in(text: &str, unit: &str) -> bool {
    let number = text.strip_suffix(unit);
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

impl InArm<'_> {
    /// A figure, median over the row's sessions.
    fn middle(&self, of: impl Fn(&[&Session]) -> Option<f64>) -> Option<f64> {
        let ids = self.row.ids.iter();
        let values = ids.map(|id| of(&sessions(self.row.run, self.arm, id)));
        median(&values.collect::<Option<Vec<f64>>>()?)
    }
}

/// How the sessions of one name went over all rounds, the invalid ones too.
struct Went<'r>(Vec<&'r Session>);

impl<'r> Went<'r> {
    fn of(run: &'r Run, id: &str) -> Self {
        let arms = run.rounds.iter().flat_map(|r| &r.arms);
        let all = arms.flat_map(|a| &a.sessions).filter(|s| s.id == id);
        Self(all.collect())
    }

    fn is_done(&self) -> bool {
        self.0.iter().all(|s| is_done(s) && !s.tried_to_leave)
    }

    fn label(&self) -> String {
        let all = &self.0;
        let done = all.iter().filter(|s| is_done(s)).count();
        let mut label = match all.iter().find(|s| !is_done(s)) {
            None if all.is_empty() => unknown(),
            None if all.iter().any(|s| s.status == Status::CompletedNoExit) => {
                "done, did not exit".to_owned()
            }
            None => "done".to_owned(),
            Some(s) => {
                let why = match s.status {
                    status if !status.is_completed() => format!(", {}", status.label()),
                    _ if !s.verified => ", not all verified".to_owned(),
                    _ => String::new(),
                };
                format!("{done} of {} done{why}", all.len())
            }
        };
        if all.iter().any(|s| s.tried_to_leave) {
            label.push_str(", tried to leave the machine");
        }
        label
    }
}

/// Whether a session ended by itself and its work counts as done.
pub fn is_done(session: &Session) -> bool {
    session.failures.is_empty() && session.status.is_completed() && session.verified
}
