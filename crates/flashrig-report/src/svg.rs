//! "More sessions, slower turns": the picture of a run of `fit`. Pure; one file, no fonts or
//! scripts from elsewhere, readable on light and on dark paper.

use std::fmt::Write as _;

use super::head;
use flashrig_config::format_tokens;
use flashrig_record::{Cell, CellVerdict, LoadRun};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
/// The plot within the picture.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 388.0;
/// Labels of lines stand at least so far apart.
const LABEL_HEIGHT: f64 = 17.0;

/// Line colours that differ also for people who see few of them (Okabe and Ito), on light and on
/// dark paper, and the marks that tell lines apart without any colour.
const SERIES: [(&str, &str, Mark); 6] = [
    ("#0072b2", "#56b4e9", Mark::Circle),
    ("#d55e00", "#ff8f3d", Mark::Square),
    ("#007a5a", "#2fd6a5", Mark::Diamond),
    ("#a8457c", "#e79ac4", Mark::Triangle),
    ("#7a6a00", "#f0e442", Mark::Circle),
    ("#555555", "#bbbbbb", Mark::Square),
];

#[derive(Clone, Copy)]
enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// Where values lie in the picture.
struct Scale {
    sessions: Vec<u32>,
    low: f64,
    high: f64,
}

impl Scale {
    /// Numbers of sessions are placed by their value, evenly where they are.
    fn x(&self, sessions: u32) -> f64 {
        let (first, last) = (self.sessions[0], self.sessions[self.sessions.len() - 1]);
        let share = f64::from(sessions - first) / f64::from((last - first).max(1));
        LEFT + 24.0 + share * (RIGHT - LEFT - 48.0)
    }

    fn y(&self, slowdown: f64) -> f64 {
        BOTTOM - (slowdown - self.low) / (self.high - self.low) * (BOTTOM - TOP)
    }
}

/// The picture; `None` when there are not at least two sizes with a slowdown to show.
pub fn slowdown(run: &LoadRun) -> Option<String> {
    let shown: Vec<&Cell> = run
        .cells
        .iter()
        .filter(|c| c.slowdown.worst.is_some())
        .collect();
    let mut sessions: Vec<u32> = shown.iter().map(|c| c.sessions).collect();
    sessions.sort_unstable();
    sessions.dedup();
    if sessions.len() < 2 {
        return None;
    }
    let limits = run.spec.thresholds;
    let highest = shown
        .iter()
        .flat_map(|c| c.slowdown.rounds.iter().copied().chain(c.slowdown.worst))
        .fold(limits.fail, f64::max);
    let scale = Scale {
        sessions,
        low: 0.5,
        high: (highest * 1.08 * 2.0).ceil() / 2.0,
    };
    let mut out = String::new();
    head(run, &mut out);
    axes(&scale, &mut out);
    threshold(&scale, limits.pass, "pass up to", &mut out);
    threshold(&scale, limits.fail, "warning up to", &mut out);
    lines(run, &scale, &mut out);
    let _ = writeln!(
        out,
        "<text class=\"soft\" x=\"{LEFT}\" y=\"{:.1}\">flashrig fit · {}</text>\n</svg>",
        HEIGHT - 10.0,
        escaped(&run.started_at)
    );
    Some(out)
}

fn head(run: &LoadRun, out: &mut String) {
    let simulated = if run.server.simulated {
        "simulated server "
    } else {
        ""
    };
    let about = format!(
        "{simulated}{} · model {} · {}",
        run.server.name,
        head::file_name(&run.server.model),
        if run.spec.rounds == 1 {
            "1 round".to_owned()
        } else {
            format!(
                "medians of {} rounds, small points are rounds",
                run.spec.rounds
            )
        },
    );
    let mut light = String::new();
    let mut dark = String::new();
    for (index, (on_light, on_dark, _)) in SERIES.iter().enumerate() {
        let _ = write!(light, ".s{index}{{--c:{on_light}}}");
        let _ = write!(dark, ".s{index}{{--c:{on_dark}}}");
    }
    let answer = run.verdict.as_ref().map_or("", |v| v.answer.as_str());
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-labelledby=\"t d\">\n\
         <title id=\"t\">More sessions, slower turns</title>\n\
         <desc id=\"d\">{}</desc>\n\
         <style>\n\
         svg{{--paper:#fff;--ink:#1b1b1b;--faint:#d9d9d9;--soft:#5c5c5c;font:13px system-ui,\
         -apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}}\n\
         {light}\n\
         @media (prefers-color-scheme:dark){{svg{{--paper:#161616;--ink:#ececec;--faint:#3a3a3a;\
         --soft:#a6a6a6}}{dark}}}\n\
         text{{fill:var(--ink)}}.soft{{fill:var(--soft)}}.title{{font-size:18px;font-weight:600}}\n\
         .grid{{stroke:var(--faint)}}.axis{{stroke:var(--ink)}}\n\
         .limit{{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:6 5}}\n\
         .line{{fill:none;stroke:var(--c);stroke-width:2.5;stroke-linejoin:round}}\n\
         .mark{{fill:var(--c);stroke:var(--paper);stroke-width:1.5}}\n\
         .round{{fill:var(--c);opacity:.4}}.name{{fill:var(--c);font-weight:600}}\n\
         .halo{{stroke:var(--paper);stroke-width:4;paint-order:stroke;stroke-linejoin:round}}\n\
         </style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"var(--paper)\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"30\">More sessions, slower turns</text>\n\
         <text class=\"soft\" x=\"{LEFT}\" y=\"52\">{}</text>",
        escaped(answer),
        escaped(&about),
    );
}

fn axes(scale: &Scale, out: &mut String) {
    let step = if scale.high > 12.0 {
        2.0
    } else if scale.high > 6.0 {
        1.0
    } else {
        0.5
    };
    let mut value = (scale.low / step).ceil() * step;
    while value <= scale.high + 1e-9 {
        let y = scale.y(value);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}×</text>",
            LEFT - 8.0,
            y + 4.5,
        );
        value += step;
    }
    let _ = writeln!(
        out,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>"
    );
    let mut free = f64::NEG_INFINITY;
    for &n in &scale.sessions {
        let x = scale.x(n);
        // Where numbers are crowded, some go without a label.
        if x - free < 22.0 {
            continue;
        }
        free = x;
        let _ = writeln!(
            out,
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{BOTTOM}\" y2=\"{:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{n}</text>",
            BOTTOM + 5.0,
            BOTTOM + 22.0,
        );
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let _ = writeln!(
        out,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">sessions at the same time</text>",
        BOTTOM + 46.0
    );
    let _ = writeln!(
        out,
        "<text transform=\"translate(20 {:.1}) rotate(-90)\" text-anchor=\"middle\">turn time, \
         times that alone (worst session)</text>",
        f64::midpoint(TOP, BOTTOM)
    );
}

fn threshold(scale: &Scale, value: f64, message: &str, out: &mut String) {
    let y = scale.y(value);
    let _ = writeln!(
        out,
        "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <text class=\"soft halo\" x=\"{:.1}\" y=\"{:.1}\">{message} {value}×</text>",
        LEFT + 6.0,
        y - 5.0,
    );
}

fn lines(run: &LoadRun, scale: &Scale, out: &mut String) {
    let mut labels = Vec::new();
    for (index, &context) in run.spec.contexts.iter().enumerate() {
        let series = index % SERIES.len();
        let mark = SERIES[series].2;
        let points: Vec<(&Cell, f64)> = run
            .cells
            .iter()
            .filter(|c| c.context_tokens == context)
            .filter_map(|c| Some((c, c.slowdown.worst?)))
            .collect();
        let Some((last, worst)) = points.last() else {
            continue;
        };
        labels.push((
            scale.x(last.sessions),
            scale.y(*worst),
            series,
            format!("{} context{}", format_tokens(context), beyond(run, last)),
        ));
        let _ = writeln!(out, "<g class=\"s{series}\">");
        let path: Vec<String> = points
            .iter()
            .map(|(c, worst)| format!("{:.1},{:.1}", scale.x(c.sessions), scale.y(*worst)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline class=\"line\" points=\"{}\"/>",
            path.join(" ")
        );
        for (cell, worst) in points {
            let x = scale.x(cell.sessions);
            if cell.slowdown.rounds.len() > 1 && cell.sessions > 1 {
                for round in &cell.slowdown.rounds {
                    let _ = writeln!(
                        out,
                        "<circle class=\"round\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                        scale.y(*round)
                    );
                }
            }
            let title = format!(
                "{} sessions at {}: {worst:.2}×",
                cell.sessions,
                format_tokens(context)
            );
            draw(mark, x, scale.y(worst), &title, out);
        }
        let _ = writeln!(out, "</g>");
    }
    // From the top down, none over another.
    labels.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = f64::NEG_INFINITY;
    for (x, y, series, message) in labels {
        let at = y.max(free);
        free = at + LABEL_HEIGHT;
        let _ = writeln!(
            out,
            "<text class=\"name halo s{series}\" x=\"{:.1}\" y=\"{:.1}\">{message}</text>",
            x + 12.0,
            at + 4.5,
        );
    }
}

/// What ends a line, when the next size was tried and has no slowdown: `, 2 refused`.
fn beyond(run: &LoadRun, last: &Cell) -> String {
    let next = run
        .cells
        .iter()
        .filter(|c| c.context_tokens == last.context_tokens && c.sessions > last.sessions)
        .find(|c| c.verdict != CellVerdict::Unknown);
    next.map_or_else(String::new, |c| {
        format!(", {} {}", c.sessions, c.verdict.label())
    })
}

fn draw(mark: Mark, x: f64, y: f64, title: &str, out: &mut String) {
    let title = format!("<title>{}</title>", escaped(title));
    let r = 5.5;
    let _ = match mark {
        Mark::Circle => writeln!(
            out,
            "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\">{title}</circle>"
        ),
        Mark::Square => writeln!(
            out,
            "<rect class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\">{title}</rect>",
            x - r,
            y - r,
            2.0 * r,
            2.0 * r
        ),
        Mark::Diamond => writeln!(
            out,
            "<path class=\"mark\" d=\"M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z\">{title}</path>",
            y - 1.3 * r,
            x + 1.3 * r,
            y + 1.3 * r,
            x - 1.3 * r
        ),
        Mark::Triangle => writeln!(
            out,
            "<path class=\"mark\" d=\"M{x:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\">{title}</path>",
            y - 1.3 * r,
            x + 1.2 * r,
            y + 0.9 * r,
            x - 1.2 * r,
            y + 0.9 * r
        ),
    };
}

/// Text that cannot end an element; names come from servers.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fit::{cells, verdict};
    use flashrig_record::testing::{K32, K256, fit_run as run, measured};

    fn picture(model: &str) -> Option<String> {
        let mut run = run(&[K32, K256], &[1, 2, 4], 2);
        run.server.model = model.into();
        for round in 1..=2 {
            for context in [K32, K256] {
                run.measured.push(measured(round, context, &[10.0]));
                run.measured.push(measured(round, context, &[17.6, 17.0]));
            }
            run.measured.push(measured(round, K32, &[30.0; 4]));
        }
        run.cells = cells(&run);
        run.verdict = Some(verdict(&run, &run.cells));
        slowdown(&run)
    }

    #[test]
    fn each_context_has_a_line_with_its_rounds_behind_and_both_thresholds_are_there() {
        let picture = picture("m").unwrap();
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("class=\"limit\"").count(), 2);
        // Three combinations beside others, two rounds each.
        assert_eq!(picture.matches("class=\"round\"").count(), 6);
        assert!(picture.contains("2 sessions at 256K: 1.76×"));
        assert!(picture.contains("simulated server flash-next"));
    }

    #[test]
    fn names_from_the_server_cannot_break_the_picture() {
        let picture = picture("<script>&\"x\u{7}").unwrap();
        assert!(!picture.contains("<script>"));
        assert!(picture.contains("&lt;script&gt;&amp;&quot;x "));
    }

    #[test]
    fn one_size_alone_makes_no_picture() {
        let mut run = run(&[K32], &[1], 1);
        run.measured.push(measured(1, K32, &[10.0]));
        run.cells = cells(&run);
        assert_eq!(slowdown(&run), None);
    }
}
