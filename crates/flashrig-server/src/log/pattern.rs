//! Lines of a server's log, as events under common names. What each server writes stands in its
//! profile as patterns; this file knows no server.

use regex::{Regex, RegexSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flashrig_config::Expression;

/// A pattern for lines of the log: a `[[log]]` table of a profile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawLogPattern {
    /// What a line that matches tells.
    pub event: LogEventKind,
    /// A regular expression that matches somewhere in the line. Its named groups are the event's
    /// fields; those of a setting are named as the setting.
    #[schemars(with = "String")]
    pub pattern: Expression,
}

/// What a line of the log can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogEventKind {
    /// A request was refused.
    Refused,
    /// A request was served.
    Finished,
    /// So much of a prompt was found in the cache.
    Cached,
    /// So much of a prompt has been read.
    PrefillProgress,
    /// A setting that is in effect.
    Setting,
}

/// An event of the log. What a line does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum LogEvent {
    /// A request was refused.
    Refused {
        /// Tokens of its prompt.
        prompt_tokens: Option<u64>,
        /// Tokens of context that it needed.
        needed_tokens: Option<u64>,
        /// Tokens of context that there are.
        available_tokens: Option<u64>,
        /// Memory that it needed, in megabytes as the server counts them.
        needed_mb: Option<u64>,
        /// Memory that there was, in megabytes as the server counts them.
        available_mb: Option<u64>,
    },
    /// A request was served.
    Finished {
        /// Tokens of its prompt, cached ones included.
        prompt_tokens: Option<u64>,
        /// Those that came from the cache.
        cached_tokens: Option<u64>,
        /// Tokens of its answer.
        generated_tokens: Option<u64>,
        /// Tokens of prompt and answer, where only the sum is told.
        tokens: Option<u64>,
    },
    /// So much of a prompt was found in the cache.
    Cached {
        /// What the server calls the request; of several lines of one the first tells.
        request: Option<String>,
        /// Tokens of its prompt that were there.
        cached_tokens: Option<u64>,
    },
    /// So much of a prompt has been read.
    PrefillProgress {
        /// Tokens read so far.
        done_tokens: Option<u64>,
        /// Tokens of the prompt.
        total_tokens: Option<u64>,
        /// Share read so far, 0 to 1.
        share: Option<f64>,
    },
    /// A setting that is in effect.
    Setting {
        /// Its name, as the profile has it.
        name: String,
        /// Its value, in the server's words.
        value: String,
    },
}

impl LogEventKind {
    /// The groups that a pattern may have; `None` when it names them itself.
    fn fields(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Refused => Some(&[
                "prompt_tokens",
                "needed_tokens",
                "available_tokens",
                "needed_mb",
                "available_mb",
            ]),
            Self::Finished => Some(&[
                "prompt_tokens",
                "cached_tokens",
                "generated_tokens",
                "tokens",
            ]),
            Self::Cached => Some(&["request", "cached_tokens"]),
            Self::PrefillProgress => Some(&["done_tokens", "total_tokens", "share"]),
            Self::Setting => None,
        }
    }
}

/// A pattern that can be used.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawLogPattern")]
pub struct LogPattern {
    kind: LogEventKind,
    pattern: Regex,
}

impl TryFrom<RawLogPattern> for LogPattern {
    type Error = String;

    fn try_from(raw: RawLogPattern) -> Result<Self, String> {
        let Expression(pattern) = raw.pattern;
        let groups: Vec<&str> = pattern.capture_names().flatten().collect();
        match raw.event.fields() {
            None if groups.is_empty() => {
                return Err(format!(
                    "the pattern {:?} has no named group; a setting needs one, named as \
                     the setting: (?<max_concurrent>\\d+)",
                    pattern.as_str()
                ));
            }
            Some(fields) => {
                if let Some(group) = groups.iter().find(|group| !fields.contains(group)) {
                    return Err(format!(
                        "the group {group:?} is not a field of this event; there \
                         are: {}",
                        fields.join(", ")
                    ));
                }
            }
            None => {}
        }
        Ok(Self {
            kind: raw.event,
            pattern,
        })
    }
}

/// What a line tells, by these patterns.
pub fn events(patterns: &[LogPattern], line: &str) -> Vec<LogEvent> {
    patterns
        .iter()
        .flat_map(|pattern| pattern.read(line))
        .collect()
}

/// Reads lines by all patterns at once: a line that means nothing is looked at once.
#[derive(Clone, Debug, Default)]
pub struct LogReader {
    patterns: Vec<LogPattern>,
    /// `None` when there are too many or too large ones for a set; each is then tried.
    set: Option<RegexSet>,
}

impl LogReader {
    /// For these patterns; of several of one kind that fit a line the first counts.
    pub fn new(patterns: Vec<LogPattern>) -> Self {
        let texts = patterns.iter().map(|pattern| pattern.pattern.as_str());
        Self {
            set: RegexSet::new(texts).ok(),
            patterns,
        }
    }

    /// Whether there is a pattern for such events.
    pub fn knows(&self, kind: LogEventKind) -> bool {
        self.patterns.iter().any(|pattern| pattern.kind == kind)
    }

    /// What a line tells: of each kind one event at most, but every setting.
    pub fn read(&self, line: &str) -> Vec<LogEvent> {
        let fits: Vec<&LogPattern> = match &self.set {
            Some(set) => set
                .matches(line)
                .iter()
                .map(|index| &self.patterns[index])
                .collect(),
            None => self.patterns.iter().collect(),
        };
        let mut seen = Vec::new();
        let mut reported = Vec::new();
        for pattern in fits {
            if pattern.kind != LogEventKind::Setting && seen.contains(&pattern.kind) {
                continue;
            }
            let events = pattern.read(line);
            if !events.is_empty() {
                seen.push(pattern.kind);
            }
            reported.extend(events);
        }
        reported
    }
}

impl LogPattern {
    /// Whether both say the same of the same lines.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind, self.pattern.as_str()) == (other.kind, other.pattern.as_str())
    }

    fn read(&self, line: &str) -> Vec<LogEvent> {
        let Some(found) = self.pattern.captures(line) else {
            return Vec::new();
        };
        let count = |field: &str| found.name(field)?.as_str().parse::<u64>().ok();
        match self.kind {
            LogEventKind::Refused => vec![LogEvent::Refused {
                prompt_tokens: count("prompt_tokens"),
                needed_tokens: count("needed_tokens"),
                available_tokens: count("available_tokens"),
                needed_mb: count("needed_mb"),
                available_mb: count("available_mb"),
            }],
            LogEventKind::Finished => vec![LogEvent::Finished {
                prompt_tokens: count("prompt_tokens"),
                cached_tokens: count("cached_tokens"),
                generated_tokens: count("generated_tokens"),
                tokens: count("tokens"),
            }],
            LogEventKind::Cached => vec![LogEvent::Cached {
                request: found.name("request").map(|id| id.as_str().to_owned()),
                cached_tokens: count("cached_tokens"),
            }],
            LogEventKind::PrefillProgress => vec![LogEvent::PrefillProgress {
                done_tokens: count("done_tokens"),
                total_tokens: count("total_tokens"),
                share: found.name("share").and_then(|s| s.as_str().parse().ok()),
            }],
            LogEventKind::Setting => {
                let names = self.pattern.capture_names().flatten();
                let reported = names.filter_map(|name| {
                    Some(LogEvent::Setting {
                        name: name.to_owned(),
                        value: found.name(name)?.as_str().to_owned(),
                    })
                });
                reported.collect()
            }
        }
    }
}
