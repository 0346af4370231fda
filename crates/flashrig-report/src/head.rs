//! What the head of every report says.

use std::fmt::Write as _;

use console::Style;

use super::figures::count;
use flashrig_record::{ContextSource, Server, SessionSpec};

/// The line that says who answered.
#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^53"
)]
pub fn who_answered(command: &str, server: &Server, out: &mut String) {
    let version = server.version.as_deref().unwrap_or("version unknown");
    let context = match (server.context_tokens, server.context_source) {
        (Some(n), ContextSource::Given) => {
            let reported = server
                .context_reported_tokens
                .filter(|reported| *reported < n);
            let reported = reported.map_or_else(String::new, |reported| {
                format!("; the server says {}", count(Some(reported as f64)))
            });
            format!("context {} (as given{reported})", count(Some(n as f64)))
        }
        (Some(n), _) => format!("context {}", count(Some(n as f64))),
        (None, _) => "context unknown".to_owned(),
    };
    let is_listed = server.models.as_ref().is_some_and(|list| !list.is_empty());
    let name = file_name(&server.model);
    let model = if is_listed {
        name.to_owned()
    } else {
        // Any name may have been answered by any model.
        format!("unknown ({name} was asked for)")
    };
    let file = server.profile_file.as_ref();
    let file = file.map_or_else(String::new, |file| format!(" (profile {file})"));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} {command} · model {model} · {}{file} {version} · {context}",
        Style::new().bold().apply_to("flashrig"),
        server.name,
    );
}

/// The files of the project that agents and tasks were read from in place of built-in ones; nothing
/// when all are built in.
pub fn project_files(sessions: &[SessionSpec], out: &mut String) {
    let mut files: Vec<&str> = Vec::new();
    for spec in sessions {
        let both = [&spec.agent.profile_file, &spec.task_folder];
        for file in both.into_iter().flatten() {
            if !files.contains(&file.as_str()) {
                files.push(file);
            }
        }
    }
    if !files.is_empty() {
        let _ = writeln!(out, "read from this project: {}", files.join(", "));
    }
}

/// The name of a model as people read it: servers that load a file may call it by its whole path,
/// which the record has.
pub fn file_name(model: &str) -> &str {
    match model.rsplit_once('/') {
        Some((_, name)) if model.starts_with('/') && !name.is_empty() => name,
        _ => model,
    }
}

/// That the server was reset before each `what`, for the line that tells of the setting.
pub fn reset_before(is_reset: bool, what: &str) -> String {
    match is_reset {
        true => format!(" · server reset before each {what}"),
        false => String::new(),
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
