//! Whether a stored run of `fit` can go on: it is not finished, what was typed agrees with it, and the
//! server is the same. Pure.

use super::Refused;
use super::fit::{Asked, SIMULATED_ROUNDS, spec};
use super::server::ServerRequest;
use flashrig_http::Address;
use flashrig_record::{LoadRun, LoadSpec, Managed, RunState, Server};

/// Whether what was typed agrees with the run that is to go on.
///
/// # Errors
/// The first option that differs.
pub fn agrees(asked: &Asked, server: &ServerRequest, run: &LoadRun) -> Result<(), Refused> {
    let kept = &run.spec;
    let typed = spec(asked, run.spec.seed, SIMULATED_ROUNDS)?;
    let side_rate = |spec: &LoadSpec| spec.side.map(|s| s.warm_rate_per_s);
    // Typed, and another than the run's.
    let differs = [
        (
            "--contexts",
            asked.contexts.is_some() && typed.contexts != kept.contexts,
        ),
        (
            "--sessions",
            asked.sessions.is_some() && typed.sessions != kept.sessions,
        ),
        (
            "--rounds",
            (asked.rounds.is_some() || asked.max_time.is_some())
                && (typed.rounds, typed.auto_rounds) != (kept.rounds, kept.auto_rounds),
        ),
        ("--search", asked.search && !kept.search),
        ("--reset", asked.reset && !kept.reset),
        (
            "--checks",
            asked.checks.is_some() && typed.checks != kept.checks,
        ),
        (
            "--answer-tokens",
            asked.answer_tokens.is_some() && typed.answer_tokens != kept.answer_tokens,
        ),
        (
            "--think",
            asked.think.is_some() && typed.think_s != kept.think_s,
        ),
        (
            "--stagger",
            asked.stagger.is_some() && typed.stagger_s != kept.stagger_s,
        ),
        ("--seed", asked.seed.is_some() && typed.seed != kept.seed),
        (
            "--side-rate",
            asked.side_rate.is_some() && side_rate(&typed) != side_rate(kept),
        ),
        ("--no-side", asked.no_side && kept.side.is_some()),
        (
            "--recall",
            asked.recall.is_some() && typed.recall != kept.recall,
        ),
        (
            "--pass-below",
            asked.pass_below.is_some() && typed.thresholds.pass != kept.thresholds.pass,
        ),
        (
            "--fail-above",
            asked.fail_above.is_some() && typed.thresholds.fail != kept.thresholds.fail,
        ),
        (
            "--expect",
            asked.expect.is_some() && typed.expect != kept.expect,
        ),
        (
            "--first-token-limit",
            asked.first_token_limit.is_some()
                && typed.first_token_limit_s != kept.first_token_limit_s,
        ),
        (
            "--speed",
            server.speed.is_some() && server.speed != run.server.speed,
        ),
        (
            "--set",
            !server.sets.is_empty() && server.sets != run.server.settings,
        ),
        (
            "--model",
            server
                .model
                .as_ref()
                .is_some_and(|m| *m != run.server.model),
        ),
        (
            "--server",
            server
                .server
                .as_ref()
                .is_some_and(|typed| !is_server(typed, &run.server)),
        ),
    ];
    match differs.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((option, _)) => Err(Refused(format!(
            "{option} is not what the run {} was started with; leave it out to go on as before, or \
             start a new run without --resume",
            run.id
        ))),
    }
}

/// Whether a typed address or name means the server of a run.
fn is_server(typed: &str, server: &Server) -> bool {
    let name = base_name(server);
    if typed == name {
        return true;
    }
    let at = |text: &'_ str| {
        let parts = text
            .split_once('@')
            .filter(|(of, url)| Address::is_meant(url) && !Address::is_meant(of));
        parts.map(|(profile, url)| (profile.to_owned(), url.to_owned()))
    };
    let address = match at(typed) {
        Some((profile, url)) if at(name).is_some_and(|(was, _)| was == profile) => url,
        Some(_) => return false,
        None => typed.to_owned(),
    };
    same_address(&address, &server.url)
}

/// Whether both are addresses of one server. `/v1` at their end, a usual port, and who asks make no
/// difference.
fn same_address(one: &str, other: &str) -> bool {
    match (Address::parse(one), Address::parse(other)) {
        (Ok(one), Ok(other)) => one.is_same(&other),
        _ => false,
    }
}

/// Whether the server that was reached is the run's.
///
/// # Errors
/// It is not; says in what.
pub fn same_server(found: &Server, run: &LoadRun) -> Result<(), Refused> {
    let was = &run.server;
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let number = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let differs = if found.model != was.model {
        Some(("model", was.model.clone(), found.model.clone()))
    } else if found.version != was.version {
        Some(("version", text(&was.version), text(&found.version)))
    } else if found.context_tokens != was.context_tokens {
        Some((
            "context",
            number(was.context_tokens),
            number(found.context_tokens),
        ))
    } else if found.speed != was.speed {
        let speed = |s: Option<f64>| s.map_or_else(|| "none".to_owned(), |s| s.to_string());
        Some(("speed", speed(was.speed), speed(found.speed)))
    } else if found.simulated != was.simulated {
        let kind = |simulated| if simulated { "simulated" } else { "real" }.to_owned();
        Some(("kind", kind(was.simulated), kind(found.simulated)))
    } else {
        started_otherwise(found, was)
    };
    match differs {
        None => Ok(()),
        Some((what, was, now)) => Err(Refused(format!(
            "the server is not the one that the run {} was started with: its {what} was {was} and \
             is {now} now; start a new run without --resume",
            run.id
        ))),
    }
}

/// In what a server that flashrig started is another: program, files, what it was started with.
fn started_otherwise(found: &Server, was: &Server) -> Option<(&'static str, String, String)> {
    let (Some(now), Some(was)) = (&found.managed, &was.managed) else {
        let by = |managed| if managed { "flashrig" } else { "somebody else" }.to_owned();
        let (now, was) = (found.managed.is_some(), was.managed.is_some());
        return (now != was).then(|| ("starter", by(was), by(now)));
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let settings = |managed: &Managed| {
        let all = managed.variables.iter();
        let all = all.map(|v| format!("{}={}", v.name, v.value));
        all.collect::<Vec<_>>().join(", ")
    };
    let files = |managed: &Managed| {
        let all = managed.files.iter();
        let all = all.map(|f| format!("{} {}", f.variable, text(&f.sha256)));
        all.collect::<Vec<_>>().join(", ")
    };
    let environment = |managed: &Managed| {
        let all = managed.environment.iter();
        let all = all.map(|(name, value)| format!("{name}={value}"));
        all.collect::<Vec<_>>().join(", ")
    };
    [
        (
            "program (SHA-256)",
            text(&was.program_sha256),
            text(&now.program_sha256),
        ),
        (
            "program's version",
            text(&was.program_version),
            text(&now.program_version),
        ),
        ("files (SHA-256)", files(was), files(now)),
        ("settings", settings(was), settings(now)),
        ("environment", environment(was), environment(now)),
    ]
    .into_iter()
    .find(|(_, was, now)| was != now)
}

/// Whether a record can be gone on with.
///
/// # Errors
/// It is none of `fit`, or it is finished.
pub fn is_open(run: &LoadRun) -> Result<(), Refused> {
    if run.command != "fit" {
        return Err(Refused(format!(
            "--resume: {} is a run of {}, not of fit",
            run.id, run.command
        )));
    }
    if run.state == RunState::Finished {
        return Err(Refused(format!(
            "--resume: {} is finished; flashrig report shows it",
            run.id
        )));
    }
    Ok(())
}

/// The name of the server's profile without what was changed of it, or its address.
pub fn base_name(server: &Server) -> &str {
    let name = server.name.as_str();
    name.split_once(" with ").map_or(name, |(base, _)| base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_runs_when_host_port_and_path_are_and_no_prefix_of_it() {
        let is = same_address;
        let url = "http://h:8000";
        for typed in [
            "http://h:8000",
            "http://H:8000/",
            "http://h:8000/v1",
            "http://h:8000/v1/",
        ] {
            assert!(is(typed, url), "{typed}");
        }
        for typed in [
            "http://h:80",
            "http://h:800",
            "http://h",
            "http://h:8000/x",
            "h:8000",
            "http",
        ] {
            assert!(!is(typed, url), "{typed}");
        }
        assert!(is("http://h", "http://h:80"));
        assert!(!is("http://h/a", "http://h/ab"));
    }
}
