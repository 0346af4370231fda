//! The validated form of an agent profile.

use std::path::{Component, Path};
use std::time::Duration;

use super::launch;
use super::raw::{RawDialect, RawFormat, RawMeaning, RawProfile, RawRule};
use super::transcript::{Grammar, Meaning, Pointer, Rule};
use flashrig_config::{Document, Expression, FileError, Template, parse_duration};
use flashrig_gateway::egress::{Pattern, PatternError};
use flashrig_record::Dialect;

/// The format of agent profiles.
pub const AGENT_SCHEMA: &str = "flashrig.agent/1";

/// How to find, start and read one agent.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name of the profile: its file's name.
    pub name: String,
    /// File of the project that it was read from, relative to the project's folder; `None` for a
    /// built-in profile.
    pub file: Option<String>,
    /// One line for people.
    pub title: String,
    /// The request form that the agent sends, for the warm-up; `None` when not known beforehand.
    pub dialect: Option<Dialect>,
    /// Context length told to the agent when nobody knows the server's, in tokens.
    pub fallback_context: u64,
    /// Program name or path; `None` for `command`, whose program comes from the command line.
    pub program: Option<String>,
    /// Folder below `harness/npm/` that installs it.
    pub npm: Option<String>,
    /// Version probe.
    pub version: Option<VersionProbe>,
    /// Arguments.
    pub args: Vec<Template>,
    /// Limit from the start to the first main request.
    pub first_request_limit: Duration,
    /// Limit for doing nothing with no request open.
    pub idle_limit: Duration,
    /// Limit from the end of the work to the exit.
    pub exit_grace: Duration,
    /// Environment.
    pub env: Vec<(String, Template)>,
    /// Environment that keeps the agent's prompts from changing at the start.
    pub stable_prefix: Vec<(String, Template)>,
    /// Variables passed on from the operator.
    pub pass_env: Vec<String>,
    /// Destinations beyond this machine that it may reach.
    pub egress_allow: Vec<Pattern>,
    /// Files for the private home.
    pub files: Vec<HomeFile>,
    /// How its standard output is read.
    pub transcript: Grammar,
}

/// How to ask for a version.
#[derive(Clone, Debug)]
pub struct VersionProbe {
    /// Arguments.
    pub args: Vec<String>,
    /// Its first group is the version.
    pub pattern: regex::Regex,
}

/// A file for the private home.
#[derive(Clone, Debug)]
pub struct HomeFile {
    /// Path relative to the home.
    pub path: String,
    /// Contents.
    pub content: Template,
    /// Whether values are escaped for JSON strings.
    pub json: bool,
}

impl Profile {
    /// Validates a profile, which was parsed from `document`.
    ///
    /// # Errors
    /// Names file, line and field.
    pub fn from_raw(name: &str, document: &Document, raw: RawProfile) -> Result<Self, FileError> {
        let bad = |field: &str, problem: String| document.error(field, problem);
        let duration =
            |field: &str, text: &str| parse_duration(text).map_err(|e| bad(field, e.to_string()));
        let template =
            |field: &str, text: &str| launch::template(text).map_err(|message| bad(field, message));
        if raw.fallback_context == 0 {
            return Err(bad("fallback_context", "must be above 0".to_owned()));
        }
        let version = raw
            .version
            .map(|v| {
                let Expression(pattern) = v.pattern;
                if pattern.captures_len() < 2 {
                    return Err(bad(
                        "version.pattern",
                        "needs a group around the version".to_owned(),
                    ));
                }
                Ok(VersionProbe {
                    args: v.args,
                    pattern,
                })
            })
            .transpose()?;
        let files = raw
            .files
            .iter()
            .enumerate()
            .map(|(index, f)| {
                let path = Path::new(&f.path);
                let inside = path.components().all(|c| matches!(c, Component::Normal(_)));
                if !inside || f.path.is_empty() {
                    return Err(bad(
                        &format!("files[{index}].path"),
                        format!("{:?} leaves the session's home", f.path),
                    ));
                }
                Ok(HomeFile {
                    path: f.path.clone(),
                    content: template(&format!("files[{index}].content"), &f.content)?,
                    json: path.extension().is_some_and(|e| e == "json"),
                })
            })
            .collect::<Result<_, _>>()?;
        let rules = raw
            .transcript
            .events
            .iter()
            .enumerate()
            .map(|(index, r)| {
                rule(r).map_err(|(field, message)| {
                    bad(&format!("transcript.events[{index}].{field}"), message)
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_owned(),
            file: None,
            title: raw.title,
            dialect: match raw.dialect {
                RawDialect::Anthropic => Some(Dialect::AnthropicMessages),
                RawDialect::OpenaiChat => Some(Dialect::OpenaiChat),
                RawDialect::OpenaiResponses => Some(Dialect::OpenaiResponses),
                RawDialect::Any => None,
            },
            fallback_context: raw.fallback_context,
            program: raw.program.name,
            npm: raw.program.npm,
            version,
            args: raw
                .launch
                .args
                .iter()
                .enumerate()
                .map(|(index, a)| template(&format!("launch.args[{index}]"), a))
                .collect::<Result<_, _>>()?,
            first_request_limit: duration(
                "launch.first_request_limit",
                &raw.launch.first_request_limit,
            )?,
            idle_limit: duration("launch.idle_limit", &raw.launch.idle_limit)?,
            exit_grace: duration("launch.exit_grace", &raw.launch.exit_grace)?,
            env: raw
                .env
                .iter()
                .map(|(k, v)| Ok((k.clone(), template(&format!("env.{k}"), v)?)))
                .collect::<Result<_, FileError>>()?,
            stable_prefix: raw
                .stable_prefix
                .env
                .iter()
                .map(|(k, v)| Ok((k.clone(), template(&format!("stable_prefix.env.{k}"), v)?)))
                .collect::<Result<_, FileError>>()?,
            pass_env: raw.pass_env,
            egress_allow: raw
                .egress_allow
                .iter()
                .enumerate()
                .map(|(index, p)| {
                    p.parse().map_err(|e: PatternError| {
                        bad(&format!("egress_allow[{index}]"), e.to_string())
                    })
                })
                .collect::<Result<_, _>>()?,
            files,
            transcript: Grammar {
                json_lines: raw.transcript.format == RawFormat::JsonLines,
                end_required: raw.transcript.end_required,
                rules,
            },
        })
    }
}

impl Profile {
    /// Makes the agent keep its prompts from changing at the start, by its own settings; what
    /// was set, as `NAME=VALUE`. Empty when it has no such setting.
    pub fn keep_prefix_stable(&mut self) -> Vec<String> {
        let settings = std::mem::take(&mut self.stable_prefix);
        let reported = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        // Later ones win.
        self.env.extend(settings);
        reported
    }
}

fn rule(raw: &RawRule) -> Result<Rule, (&'static str, String)> {
    let pointer = |field, text: &str| {
        Pointer::parse(text).ok_or((
            field,
            format!("{text:?} is not a JSON pointer; it begins with /"),
        ))
    };
    if raw.r#where.is_empty() {
        return Err(("where", "is empty: every line would match".to_owned()));
    }
    Ok(Rule {
        means: match raw.means {
            RawMeaning::Turn => Meaning::Turn,
            RawMeaning::ToolCall => Meaning::ToolCall,
            RawMeaning::End => Meaning::End,
            RawMeaning::Error => Meaning::Error,
            RawMeaning::TurnLimit => Meaning::TurnLimit,
        },
        conditions: raw
            .r#where
            .iter()
            .map(|(p, v)| Ok((pointer("where", p)?, v.clone())))
            .collect::<Result<_, _>>()?,
        key: raw.key.as_deref().map(|k| pointer("key", k)).transpose()?,
        detail: raw
            .detail
            .iter()
            .map(|d| pointer("detail", d))
            .collect::<Result<_, _>>()?,
    })
}
