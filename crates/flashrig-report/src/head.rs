//! How every report begins: the answer, the conditions, the settings; and how it ends when a run
//! came to no end of its own.

use console::Style;

use super::figures::{count, float, times};
use super::page::Page;
use flashrig_config::{format_seconds, plural};
use flashrig_record::{
    AutoRounds, ContextSource, Evidence, RunState, Server, SessionSpec, TimeVerdict,
};

/// The answer in the first line, the conditions in the second, then the settings.
pub fn head(page: &mut Page, answer: &[String], conditions: &[String], settings: &[String]) {
    page.bold(&answer.join(" · "));
    page.facts(conditions);
    page.facts(settings);
}

/// The server of a run as a condition.
pub fn server_of_run(server: &Server) -> String {
    let file = server.profile_file.as_ref();
    let file = file.map_or_else(String::new, |file| format!(" (profile {file})"));
    let name = format!("{}{file}", server.name);
    self::server(&name, server.version.as_deref(), simulated(server))
}

/// A server as a condition: its name and version, and whether it is simulated.
pub fn server(name: &str, version: Option<&str>, simulated: Option<Option<f64>>) -> String {
    let version = version.unwrap_or("(version unknown)");
    match simulated {
        None => format!("server {name} {version}"),
        Some(speed) => {
            let mark = Style::new().yellow().bold().apply_to("SIMULATED");
            let speed = speed.map_or_else(String::new, |speed| format!(" at speed {speed}"));
            format!("{mark} server {name} {version}{speed}")
        }
    }
}

/// What is made up on a simulated server.
pub fn made_up(simulated: Option<Option<f64>>, measures: &str) -> Option<String> {
    let what = match (measures, simulated?) {
        ("pair", _) => "agents, their work and checks are real",
        (_, Some(_)) => "times are its own seconds",
        (_, None) => "times are wall time",
    };
    Some(format!("the server's speed is made up, {what}"))
}

/// The time factor of a simulated server; `None` when it is a real one.
pub fn simulated(server: &Server) -> Option<Option<f64>> {
    server.simulated.then_some(server.speed)
}

/// A verdict with the bound that proves it: `pass: at most 1.38x`.
pub fn claim(verdict: TimeVerdict, evidence: Option<&Evidence>) -> String {
    let label = verdict.label();
    let Some(evidence) = evidence else {
        return label.to_owned();
    };
    let least = times(Some(evidence.at_least));
    let most = evidence.at_most.map(|most| times(Some(most)));
    match (verdict, most) {
        (TimeVerdict::Pass | TimeVerdict::PassOrWarn, Some(most)) => {
            format!("{label}: at most {most}")
        }
        (TimeVerdict::Fail | TimeVerdict::WarnOrFail, _) => format!("{label}: at least {least}"),
        (TimeVerdict::Warn | TimeVerdict::Inconclusive, Some(most)) => {
            format!("{label}: {least} to {most}")
        }
        _ => label.to_owned(),
    }
}

/// How many rounds the answer rests on, where that has to be said in the first line.
pub fn rounds(compared: u32, planned: u32, auto: Option<AutoRounds>) -> Option<String> {
    match (compared, planned) {
        (0, _) => None,
        (1, 1) => Some("one round, no evidence".to_owned()),
        (1, _) if auto.is_some() => Some("one valid round, no evidence".to_owned()),
        (1, planned) => Some(format!("one of {planned} rounds, no evidence")),
        (compared, _) if auto.is_some() => Some(plural(compared, "round")),
        (compared, planned) if compared < planned => {
            Some(format!("{compared} of {planned} rounds"))
        }
        _ => None,
    }
}

/// How many rounds were planned.
pub fn planned(most: u32, auto: Option<AutoRounds>) -> String {
    let Some(auto) = auto else {
        return plural(most, "round");
    };
    let limit = auto.max_time_s.map_or_else(String::new, |limit| {
        format!(", none begun after {}", format_seconds(limit.0))
    });
    format!("up to {most} rounds, until the verdict is settled{limit}")
}

/// Model and context length of a server.
pub fn model_and_context(server: &Server) -> [String; 2] {
    let name = file_name(&server.model);
    let is_listed = server.models.as_ref().is_some_and(|list| !list.is_empty());
    let model = if is_listed {
        format!("model {name}")
    } else {
        // Any name may have been answered by any model.
        format!("model unknown ({name} was asked for)")
    };
    let context = match (server.context_tokens, server.context_source) {
        (Some(n), ContextSource::Given) => {
            let reported = server.context_reported_tokens.filter(|told| *told < n);
            let reported = reported.map_or_else(String::new, |told| {
                format!("; the server says {}", count(float(Some(told))))
            });
            format!("context {} (as given{reported})", count(float(Some(n))))
        }
        (Some(n), _) => format!("context {}", count(float(Some(n)))),
        (None, _) => "context unknown".to_owned(),
    };
    [model, context]
}

/// The files of the project that agents and tasks were read from in place of built-in ones; `None`
/// when all are built in.
pub fn project_files(sessions: &[SessionSpec]) -> Option<String> {
    let mut files: Vec<&str> = Vec::new();
    for spec in sessions {
        let both = [&spec.agent.profile_file, &spec.task_folder];
        for file in both.into_iter().flatten() {
            if !files.contains(&file.as_str()) {
                files.push(file);
            }
        }
    }
    (!files.is_empty()).then(|| format!("read from this project: {}", files.join(", ")))
}

/// The name of a model as people read it: servers that load a file may call it by its whole path,
/// which the record has.
pub fn file_name(model: &str) -> &str {
    match model.rsplit_once('/') {
        Some((_, name)) if model.starts_with('/') && !name.is_empty() => name,
        _ => model,
    }
}

/// That the server was reset before each `what`.
pub fn reset_before(is_reset: bool, what: &str) -> Option<String> {
    is_reset.then(|| format!("server reset before each {what}"))
}

/// How far a run got, as the first part of its answer; `None` when it finished.
pub fn unfinished(state: RunState) -> Option<String> {
    let message = match state {
        RunState::Finished => return None,
        RunState::Unfinished => "not finished",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "stopped early",
    };
    Some(message.to_owned())
}

/// The last lines of a run that did not finish: why, and how to go on.
pub fn ending(page: &mut Page, state: RunState, because: Option<&str>, resume: Option<&str>) {
    let message = match state {
        RunState::Finished => return,
        RunState::Unfinished => "The run is not finished: it still runs, or flashrig was killed",
        RunState::Interrupted => "The run was interrupted",
        RunState::Failed => "The run stopped early",
    };
    let because = because.map_or_else(String::new, |because| format!(": {because}"));
    page.gap();
    page.styled(&Style::new().red().bold(), &format!("{message}{because}."));
    if let Some(command) = resume {
        page.line(&format!(
            "flashrig {command} --resume FOLDER goes on with it."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_model_called_by_the_path_of_its_file_is_read_as_the_file() {
        assert_eq!(file_name("/cache/servers/x/model.gguf"), "model.gguf");
        assert_eq!(file_name("org/model"), "org/model");
        assert_eq!(file_name("/"), "/");
    }
}
