//! What the head of every report says.

use std::fmt::Write as _;

use console::Style;

use super::figures::count;
use crate::records::{ContextSource, Server};

/// The line that says who answered.
#[expect(
    clippy::cast_precision_loss,
    reason = "context lengths are far below 2^53"
)]
pub fn who_answered(command: &str, server: &Server, out: &mut String) {
    let version = server.version.as_deref().unwrap_or("version unknown");
    let context = match (server.context_tokens, server.context_source) {
        (Some(n), ContextSource::Given) => format!("context {} (as given)", count(Some(n as f64))),
        (Some(n), _) => format!("context {}", count(Some(n as f64))),
        (None, _) => "context unknown".to_owned(),
    };
    let is_listed = server.models.as_ref().is_some_and(|list| !list.is_empty());
    let model = if is_listed {
        server.model.clone()
    } else {
        // Any name may have been answered by any model.
        format!("unknown ({} was asked for)", server.model)
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} {command} · model {model} · {} {version} · {context}",
        Style::new().bold().apply_to("flashrig"),
        server.name,
    );
}

/// That the server was reset before each `what`, for the line that tells of the setting.
pub fn reset_before(is_reset: bool, what: &str) -> String {
    match is_reset {
        true => format!(" · server reset before each {what}"),
        false => String::new(),
    }
}
