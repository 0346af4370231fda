//! The truth log read back: what became of each request, in wall and in simulated seconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Truth, TruthEnd};
use flashrig_clock::Stamp;

/// A truth log that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TruthReadError {
    /// It cannot be read.
    #[error("the simulated server's log {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It does not begin as such logs do.
    #[error("{0} is not a log of a simulated server: it has no start line")]
    NoStart(PathBuf),
}

/// A whole truth log.
#[derive(Clone, Debug, PartialEq)]
pub struct TruthRead {
    /// Profile name.
    pub profile: String,
    /// Factor by which all durations were divided.
    pub speed: f64,
    /// When the server began to listen.
    pub started: Stamp,
    /// The requests by number.
    pub requests: Vec<RequestTruth>,
    /// Requests that were refused, with their error texts, in order.
    pub refused: Vec<RefusedTruth>,
}

/// What became of a request. What did not happen is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestTruth {
    /// Counts generation requests from 1 in order of arrival.
    pub request: u64,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer that was planned.
    pub planned_tokens: u32,
    /// Its body was read.
    pub queued: Stamp,
    /// It got a slot.
    pub admitted: Option<Stamp>,
    /// Prompt tokens found in the cache.
    pub cached_tokens: Option<u64>,
    /// Those of them that came from disk.
    pub disk_tokens: Option<u64>,
    /// Its prompt began to be read.
    pub prefill_start: Option<Stamp>,
    /// Its prompt was read.
    pub prefill_end: Option<Stamp>,
    /// Its first token was due.
    pub first_token: Option<Stamp>,
    /// Its last token so far was due.
    pub last_token: Option<Stamp>,
    /// Tokens sent.
    pub tokens: u32,
    /// Sum of the sequences in its decode steps, itself included, and the number of its steps.
    pub batch_steps: (u64, u64),
    /// It left its slot, or the line.
    pub finished: Option<Stamp>,
    /// How it ended.
    pub end: Option<TruthEnd>,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedTruth {
    /// When it arrived.
    pub at: Stamp,
    /// The error text that its client got.
    pub reason: String,
    /// Tokens of its prompt, when they were counted.
    pub prompt_tokens: Option<u64>,
}

impl TruthRead {
    /// Reads a log, also one that is still written: a last line that is not whole is left out.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn load(path: &Path) -> Result<Self, TruthReadError> {
        let text = std::fs::read_to_string(path).map_err(|source| TruthReadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let lines = text
            .lines()
            .map_while(|line| serde_json::from_str(line).ok());
        Self::fold(lines).ok_or_else(|| TruthReadError::NoStart(path.to_owned()))
    }

    /// The same from lines; `None` without a start line.
    pub fn fold(lines: impl IntoIterator<Item = Truth>) -> Option<Self> {
        let mut lines = lines.into_iter();
        let Some(Truth::Start {
            profile, speed, at, ..
        }) = lines.next()
        else {
            return None;
        };
        let mut requests = BTreeMap::new();
        let mut refused = Vec::new();
        for line in lines {
            apply(line, &mut requests, &mut refused);
        }
        Some(Self {
            profile,
            speed,
            started: at,
            requests: requests.into_values().collect(),
            refused,
        })
    }

    /// Request number `request`.
    pub fn request(&self, request: u64) -> Option<&RequestTruth> {
        let place = self
            .requests
            .binary_search_by_key(&request, |r| r.request)
            .ok()?;
        self.requests.get(place)
    }

    /// Wall seconds from one stamp to another; negative when `to` is earlier.
    pub fn wall_s(&self, from: Stamp, to: Stamp) -> f64 {
        let forth = to.since(from).as_secs_f64();
        forth - from.since(to).as_secs_f64()
    }

    /// The same in the simulated server's own seconds.
    pub fn simulated_s(&self, from: Stamp, to: Stamp) -> f64 {
        self.wall_s(from, to) * self.speed
    }

    /// Simulated seconds since the server began to listen.
    pub fn at_s(&self, at: Stamp) -> f64 {
        self.simulated_s(self.started, at)
    }
}

impl RequestTruth {
    /// Simulated seconds from its arrival to its first token.
    pub fn first_token_s(&self, log: &TruthRead) -> Option<f64> {
        self.first_token.map(|at| log.simulated_s(self.queued, at))
    }

    /// Simulated seconds from its arrival to its last token, of an answer that is whole.
    pub fn total_s(&self, log: &TruthRead) -> Option<f64> {
        let whole = self.end == Some(TruthEnd::Complete);
        self.last_token
            .filter(|_| whole)
            .map(|at| log.simulated_s(self.queued, at))
    }

    /// Mean number of sequences in its decode steps.
    pub fn mean_batch(&self) -> Option<f64> {
        let (sum, steps) = self.batch_steps;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        (steps > 0).then(|| sum as f64 / steps as f64)
    }
}

fn apply(line: Truth, requests: &mut BTreeMap<u64, RequestTruth>, refused: &mut Vec<RefusedTruth>) {
    match line {
        Truth::Start { .. } => {}
        Truth::Queued {
            request,
            at,
            prompt_tokens,
            planned_tokens,
        } => {
            requests.insert(
                request,
                RequestTruth {
                    request,
                    prompt_tokens,
                    planned_tokens,
                    queued: at,
                    admitted: None,
                    cached_tokens: None,
                    disk_tokens: None,
                    prefill_start: None,
                    prefill_end: None,
                    first_token: None,
                    last_token: None,
                    tokens: 0,
                    batch_steps: (0, 0),
                    finished: None,
                    end: None,
                },
            );
        }
        Truth::Refused {
            at,
            reason,
            prompt_tokens,
        } => refused.push(RefusedTruth {
            at,
            reason,
            prompt_tokens,
        }),
        Truth::Admitted {
            request,
            at,
            cached_tokens,
            disk_tokens,
        } => with(requests, request, |r| {
            r.admitted = Some(at);
            r.cached_tokens = Some(cached_tokens);
            r.disk_tokens = Some(disk_tokens);
        }),
        Truth::PrefillStart { request, at } => {
            with(requests, request, |r| r.prefill_start = Some(at));
        }
        Truth::PrefillEnd { request, at } => with(requests, request, |r| {
            r.prefill_end = Some(at);
            token(r, at);
        }),
        Truth::Step {
            at,
            requests: batch,
            ..
        } => {
            for request in &batch {
                with(requests, *request, |r| {
                    r.batch_steps.0 += batch.len() as u64;
                    r.batch_steps.1 += 1;
                    token(r, at);
                });
            }
        }
        Truth::Finished {
            request,
            at,
            tokens,
            end,
        } => with(requests, request, |r| {
            r.finished = Some(at);
            r.end = Some(end);
            // The last word, since a fault may come instead of a token.
            r.tokens = tokens;
            if tokens == 0 {
                (r.first_token, r.last_token) = (None, None);
            }
        }),
    }
}

fn token(request: &mut RequestTruth, at: Stamp) {
    request.first_token.get_or_insert(at);
    request.last_token = Some(at);
    request.tokens += 1;
}

fn with(
    requests: &mut BTreeMap<u64, RequestTruth>,
    request: u64,
    change: impl FnOnce(&mut RequestTruth),
) {
    if let Some(known) = requests.get_mut(&request) {
        change(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_put_together_from_its_lines_and_told_in_simulated_seconds() {
        let s = |seconds: u64| Stamp(seconds * 1_000_000_000);
        let lines = [
            Truth::Start {
                schema: super::super::SCHEMA.into(),
                profile: "p".into(),
                speed: 10.0,
                at: s(1),
            },
            Truth::Queued {
                request: 1,
                at: s(2),
                prompt_tokens: 7,
                planned_tokens: 3,
            },
            Truth::Admitted {
                request: 1,
                at: s(3),
                cached_tokens: 4,
                disk_tokens: 2,
            },
            Truth::PrefillStart {
                request: 1,
                at: s(3),
            },
            Truth::PrefillEnd {
                request: 1,
                at: s(5),
            },
            Truth::Step {
                at: s(6),
                late_ns: 0,
                requests: vec![1, 2],
            },
            Truth::Step {
                at: s(7),
                late_ns: 0,
                requests: vec![1],
            },
            Truth::Finished {
                request: 1,
                at: s(7),
                tokens: 3,
                end: TruthEnd::Complete,
            },
            Truth::Refused {
                at: s(8),
                reason: "no".into(),
                prompt_tokens: None,
            },
        ];
        let read = TruthRead::fold(lines).unwrap();
        let request = read.request(1).unwrap();
        assert_eq!(request.first_token_s(&read), Some(30.0));
        assert_eq!(request.total_s(&read), Some(50.0));
        assert_eq!(request.mean_batch(), Some(1.5));
        assert_eq!(request.tokens, 3);
        assert_eq!(read.at_s(request.queued), 10.0);
        assert_eq!(read.refused.len(), 1);
        assert!(TruthRead::fold([]).is_none());
    }
}
