//! The report of `servers probe`.

use console::Style;

use super::figures::count;
use super::page::Page;
use super::view::View;
use flashrig_config::format_seconds;
use flashrig_record::{
    ContextSource, DialectTried, Endpoint, EndpointState, FirstToken, Generates, Managed, Probe,
    ToolTried,
};

/// Renders a probe.
pub fn text(probe: &Probe, view: View) -> String {
    let mut page = Page::new(view);
    if probe.simulated {
        let mark = Style::new().yellow().bold().apply_to("SIMULATED");
        let speed = probe
            .speed
            .map_or_else(String::new, |speed| format!(" at speed {speed}"));
        page.line(&format!("{mark} server{speed}: times are its own seconds."));
    }
    let bold = Style::new().bold();
    let at = if probe.name == probe.url {
        String::new()
    } else {
        format!(" at {}", probe.url)
    };
    page.line(&format!("{}{at}", bold.apply_to(&probe.name)));
    identity(probe, &mut page);
    if let Some(managed) = &probe.managed {
        started(managed, &mut page);
    }

    page.title("Routes");
    let wide = probe.endpoints.iter().map(|row| row.route.len()).max();
    for row in &probe.endpoints {
        let wide = wide.unwrap_or(0);
        page.line(&format!("  {:wide$}  {}", row.route, route(row)));
    }
    if let Some(tokens) = probe.counted_tokens {
        let beside = match probe.counts_as_usage {
            Some(true) => "as its usage says",
            Some(false) => "which is not what its usage says",
            None => "its usage is unknown",
        };
        page.line(&format!(
            "  it counts {tokens} tokens for a short prompt, {beside}"
        ));
    }
    if !probe.dialects.is_empty() {
        page.title("Protocols, tried with small requests");
        for row in &probe.dialects {
            page.line(&format!("  {:<18}  {}", row.dialect.label(), tried(row)));
        }
    }
    if !probe.first_tokens.is_empty() {
        page.title("TTFT");
        for row in &probe.first_tokens {
            page.line(&format!("  {}", first_token(row)));
        }
    }
    page.title("Metrics");
    if probe.metrics.is_empty() {
        page.line("  none under a known name");
    }
    for row in &probe.metrics {
        let value = count(Some(row.value));
        page.line(&format!(
            "  {:<17} {value:>15}  {}",
            row.metric.label(),
            row.name
        ));
    }
    page.gap();
    let style = match probe.generates {
        Generates::Yes => Style::new().green().bold(),
        Generates::AcceptsOnly | Generates::No => Style::new().red().bold(),
        Generates::Unknown => Style::new().yellow().bold(),
    };
    page.line(&format!("Answer: {}", style.apply_to(&probe.answer)));
    for remark in &probe.remarks {
        page.line(&format!("  note: {remark}"));
    }
    page.text()
}

fn identity(probe: &Probe, page: &mut Page) {
    let unknown = "unknown";
    page.line(&format!(
        "  version   {}",
        probe.version.as_deref().unwrap_or(unknown)
    ));
    if let Some(fingerprint) = &probe.fingerprint {
        page.line(&format!("  print     {fingerprint} (system_fingerprint)"));
    }
    page.line(&format!(
        "  model     {}",
        probe.model.as_deref().unwrap_or(unknown)
    ));
    let listed = probe.models.as_ref().map(|list| match list.len() {
        0 => "none".to_owned(),
        1..=5 => list.join(", "),
        more => format!("{}, … ({more} in all)", list[..5].join(", ")),
    });
    page.line(&format!(
        "  lists     {}",
        listed.as_deref().unwrap_or(unknown)
    ));
    let context = match (probe.context_tokens, probe.context_source) {
        (Some(tokens), ContextSource::Server) => {
            format!("{} tokens, as the server says", count(Some(tokens as f64)))
        }
        (Some(tokens), _) => format!("{} tokens, as given", count(Some(tokens as f64))),
        (None, _) => unknown.to_owned(),
    };
    page.line(&format!("  context   {context}"));
    if let Some(quantization) = &probe.quantization {
        page.line(&format!("  quantized {quantization}"));
    }
    if let Some(slots) = probe.slots {
        page.line(&format!("  slots     {slots}"));
    }
}

/// How flashrig started it.
fn started(managed: &Managed, page: &mut Page) {
    let unknown = || "unknown".to_owned();
    let command = shell_words::join(&managed.command_line);
    page.title("Started, and stopped after this");
    page.line(&format!("  command   {command}"));
    for (name, value) in &managed.environment {
        page.line(&format!("            {name}={value}"));
    }
    let ready = format_seconds(managed.ready_after_s.0);
    page.line(&format!("  ready     after {ready}"));
    let program = managed.program_version.clone();
    page.line(&format!("  program   {}", program.unwrap_or_else(unknown)));
    let hash = managed.program_sha256.clone();
    page.line(&format!(
        "            sha256 {}",
        hash.unwrap_or_else(unknown)
    ));
    for file in &managed.files {
        let bytes = file.bytes.map(|bytes| count(Some(bytes as f64)));
        page.line(&format!(
            "  {:<9} {} ({} bytes)\n            sha256 {}",
            file.variable,
            file.path,
            bytes.unwrap_or_else(unknown),
            file.sha256.clone().unwrap_or_else(unknown)
        ));
    }
    if let Some(because) = &managed.flags_not_checked {
        page.line(&format!("  flags     not checked: {because}"));
    }
    let settings = managed
        .variables
        .iter()
        .filter(|v| managed.files.iter().all(|file| file.variable != v.name));
    for variable in settings {
        let by = variable.reported_by.as_ref();
        let by = by.map_or_else(String::new, ToString::to_string);
        let proof = match (variable.engaged, &variable.reported) {
            (Some(true), _) => format!("proven by {by}"),
            (Some(false), Some(reported)) => {
                format!("DID NOTHING: the server says {reported} ({by})")
            }
            _ => "not proven".to_owned(),
        };
        page.line(&format!(
            "  {} = {}, {proof}",
            variable.name, variable.value
        ));
    }
}

fn route(row: &Endpoint) -> String {
    let state = match row.state {
        EndpointState::Answers => "answers",
        EndpointState::Absent => "is not there",
        EndpointState::Refuses => "refuses",
        EndpointState::Page => "a web page",
        EndpointState::Silent => "no answer",
        EndpointState::Broken => "no HTTP answer",
    };
    let status = row
        .status
        .map_or_else(|| "–".to_owned(), |status| status.to_string());
    let message = match &row.message {
        Some(message) => format!(": {message}"),
        None => String::new(),
    };
    format!("{status:<3}  {state}{message}")
}

fn tried(row: &DialectTried) -> String {
    let mut message = match (row.streams, &row.message) {
        (Some(true), _) => "streams".to_owned(),
        (Some(false), Some(message)) => format!("does not stream: {message}"),
        (Some(false), None) => "does not stream".to_owned(),
        (None, _) => "not tried".to_owned(),
    };
    match &row.tool {
        Some(ToolTried::Called) => message.push_str(" · called the tool it was offered"),
        Some(ToolTried::NotCalled) => {
            message.push_str(" · took the offer of a tool and did not call it");
        }
        Some(ToolTried::Refused { message: said }) => {
            message.push_str(&format!(" · failed when a tool was offered: {said}"));
        }
        None => {}
    }
    match (row.streams, row.in_profile) {
        (Some(true), Some(false)) => message.push_str(" (its profile does not say so)"),
        (Some(false), Some(true)) => message.push_str(" (its profile says that it does)"),
        _ => {}
    }
    message
}

fn first_token(row: &FirstToken) -> String {
    let size = match (row.prompt_tokens, row.aimed_tokens) {
        (Some(tokens), _) => format!("{} tokens", count(Some(tokens as f64))),
        (None, Some(aimed)) => format!("about {} tokens", count(Some(aimed as f64))),
        (None, None) => "a small prompt".to_owned(),
    };
    let cached = match row.cached_tokens {
        Some(tokens) if tokens > 0 => format!(" ({tokens} of them cached)"),
        _ => String::new(),
    };
    let time = match (row.first_token_s, &row.message) {
        (Some(seconds), None) => format_seconds(seconds.0),
        (_, Some(message)) => message.clone(),
        (None, None) => "unknown".to_owned(),
    };
    format!("{size}{cached}: {time}")
}
