//! How many tokens the server counts for each part of a prompt.

use std::time::Duration;

use bytes::Bytes;

use super::body::{Conversation, Output};
use super::count::count_tokens;
use super::filler::{self, LINE_WORDS};
use super::prompt::{QUESTION_LINES, Recipe};
use super::sizing::Parts;
use super::{Aim, Answer, Ask, Client, LoadDialect, LoadError, LoadLimits, exchange};
use flashrig_clock::Origin;
use flashrig_http::Upstream;
use flashrig_record::{Attempt, Calibration, Outcome, RefusalKind, Role};

/// Tokens asked for where the answer's length is tried.
const FEW: u32 = 16;
/// Lines of the small prompt, and how many more the large one has.
const SMALL_LINES: u64 = 16;
const MORE_LINES: u32 = 256;
/// Facts, and short lines, of the prompts that tell their size.
const SAMPLES: u32 = 16;
/// Words of those short lines.
const SHORT_WORDS: u32 = LINE_WORDS / 2;

/// Finds a dialect in which the server streams: OpenAI chat completions, else Anthropic messages.
/// `limit` is that of the first token, on the wall clock; a first request may load the model.
///
/// # Errors
/// It streams in neither, or is not an LLM server; with what it said.
pub async fn choose_dialect(
    upstream: &Upstream,
    model: &str,
    limit: Duration,
) -> Result<LoadDialect, LoadError> {
    let mut no_route = Vec::new();
    let mut first_trouble = None;
    for dialect in [LoadDialect::OpenaiChat, LoadDialect::AnthropicMessages] {
        let aim = Aim {
            upstream: upstream.clone(),
            model: model.to_owned(),
            dialect,
            limits: LoadLimits::each(limit),
            speed: 1.0,
        };
        let client = Client::new(aim, Origin::now());
        let output = Output {
            tokens: FEW,
            fixed: false,
        };
        let answer = client.ask(ready(&client, output)).await;
        match streamed(&answer.attempt, client.aim()) {
            Ok(()) => return Ok(dialect),
            Err(
                trouble @ (LoadError::Unreachable(_)
                | LoadError::Stalled { .. }
                | LoadError::Auth { .. }
                | LoadError::UnknownModel { .. }),
            ) => return Err(trouble),
            Err(_) if answer.attempt.refusal == Some(RefusalKind::UnknownRoute) => {
                no_route.push(message(&answer.attempt));
            }
            Err(trouble) => {
                no_route.push(message(&answer.attempt));
                first_trouble.get_or_insert(trouble);
            }
        }
    }
    Err(first_trouble.unwrap_or_else(|| {
        let mut said = no_route.into_iter();
        LoadError::NoDialect {
            openai: said.next().unwrap_or_default(),
            anthropic: said.next().unwrap_or_default(),
        }
    }))
}

/// Measures how many tokens the server counts for lines, facts and turns, and whether it takes the
/// fields that fix an answer's length. Five prompts are counted: by the server's route for that,
/// when its counts are those of its usage, else by short requests, one after the other.
///
/// # Errors
/// The server does not stream, tells no usage, refuses, or fails.
pub async fn calibrate(client: &Client, seed: u64) -> Result<Calibration, LoadError> {
    let (fixed_output, prompt) = fixes_length(client).await?;
    let counter = Counter {
        client,
        seed,
        by_route: count_tokens(client, ready_to_be_counted(client)).await == Some(prompt),
    };
    let small = Sample::default();
    let few = counter.count(small).await?;
    let many = counter
        .count(Sample {
            lines: SMALL_LINES + u64::from(MORE_LINES),
            ..small
        })
        .await?;
    if many < few + u64::from(MORE_LINES) {
        // A line has a dozen words and cannot be less than one token.
        return Err(LoadError::Counts {
            few,
            many,
            lines: MORE_LINES,
        });
    }
    let facts = Sample {
        facts: SAMPLES,
        ..small
    };
    let with_facts = counter.count(facts).await?;
    let short_lines = Sample {
        short_lines: SAMPLES,
        ..small
    };
    let with_short_lines = counter.count(short_lines).await?;
    let question = Sample {
        question: true,
        ..small
    };
    let with_question = counter.count(question).await?;

    let more = |counted: u64| counted.saturating_sub(few) as f64;
    let tokens_per_line = more(many) / f64::from(MORE_LINES);
    let per_short_line = more(with_short_lines) / f64::from(SAMPLES);
    Ok(Calibration {
        tokens_per_line,
        tokens_per_word: (tokens_per_line - per_short_line) / f64::from(LINE_WORDS - SHORT_WORDS),
        envelope_tokens: few as f64 - tokens_per_line * SMALL_LINES as f64,
        tokens_per_fact: more(with_facts) / f64::from(SAMPLES),
        // The answer in between was one token long.
        tokens_per_question: (more(with_question) - 1.0).max(0.0),
        fixed_output,
    })
}

/// Whether the server takes the fields that fix an answer's length, and keeps to them; and the
/// tokens that it counted for the prompt.
async fn fixes_length(client: &Client) -> Result<(bool, u64), LoadError> {
    let output = |fixed| Output { tokens: FEW, fixed };
    let answer = client.ask(ready(client, output(true))).await;
    let attempt = &answer.attempt;
    let is_about_fields = attempt.outcome == Outcome::Refused
        && matches!(attempt.status, Some(400 | 422))
        && attempt.refusal != Some(RefusalKind::UnknownModel);
    if !is_about_fields {
        let (prompt, tokens) = usage(attempt, client.aim())?;
        return Ok((tokens == u64::from(FEW), prompt));
    }
    let Answer { attempt, .. } = client.ask(ready(client, output(false))).await;
    Ok((false, usage(&attempt, client.aim())?.0))
}

/// The prompt and answer tokens that the server counted for a streamed answer.
fn usage(attempt: &Attempt, aim: &Aim) -> Result<(u64, u64), LoadError> {
    streamed(attempt, aim)?;
    attempt
        .input_tokens
        .filter(|tokens| *tokens > 0)
        .zip(attempt.output_tokens)
        .ok_or(LoadError::NoUsage {
            path: aim.dialect.path(),
        })
}

const READY: &[u8] = b"Reply with the word ready.";

/// A request that a model answers with one word when it is let.
fn ready(client: &Client, output: Output) -> Ask {
    let aim = client.aim();
    let mut talk = Conversation::new(aim.dialect, &aim.model, output, 0);
    talk.user(|out| out.extend_from_slice(READY));
    ask(&talk, output)
}

fn ready_to_be_counted(client: &Client) -> Bytes {
    let mut talk = Conversation::to_be_counted(&client.aim().model);
    talk.user(|out| out.extend_from_slice(READY));
    talk.body()
}

fn ask(talk: &Conversation, output: Output) -> Ask {
    Ask {
        session: "calibration".to_owned(),
        role: Role::Probe,
        body: talk.body(),
        messages: talk.messages(),
        max_tokens: output.tokens,
    }
}

/// A prompt whose size tells that of one of its parts.
#[derive(Clone, Copy)]
struct Sample {
    lines: u64,
    facts: u32,
    short_lines: u32,
    question: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            lines: SMALL_LINES,
            facts: 0,
            short_lines: 0,
            question: false,
        }
    }
}

/// Has the server count prompts.
struct Counter<'c> {
    client: &'c Client,
    seed: u64,
    /// Whether the server has a route for it.
    by_route: bool,
}

impl Counter<'_> {
    async fn count(&self, sample: Sample) -> Result<u64, LoadError> {
        let aim = self.client.aim();
        if self.by_route {
            let mut talk = Conversation::to_be_counted(&aim.model);
            self.write(sample, &mut talk);
            if let Some(counted) = count_tokens(self.client, talk.body()).await {
                return Ok(counted);
            }
        }
        let output = Output {
            tokens: 1,
            fixed: false,
        };
        let mut talk = Conversation::new(aim.dialect, &aim.model, output, 32 * 1024);
        self.write(sample, &mut talk);
        let Answer { attempt, .. } = self.client.ask(ask(&talk, output)).await;
        answered(&attempt, aim)?;
        attempt
            .input_tokens
            .filter(|tokens| *tokens > 0)
            .ok_or(LoadError::NoUsage {
                path: aim.dialect.path(),
            })
    }

    fn write(&self, sample: Sample, talk: &mut Conversation) {
        let recipe = Recipe {
            seed: self.seed,
            salt: filler::mix(self.seed),
            shared_prefix: false,
            facts: sample.facts,
        };
        talk.user(|out| {
            for number in 0..sample.short_lines {
                filler::line(!self.seed, u64::from(number), SHORT_WORDS, out);
            }
            let parts = Parts {
                lines: sample.lines,
                words: None,
            };
            recipe.first(parts, out);
        });
        if sample.question {
            talk.assistant(".");
            talk.user(|out| recipe.question(1, QUESTION_LINES, out));
        }
    }
}

/// Whether a request was answered by a stream with tokens in it.
pub(super) fn streamed(attempt: &Attempt, aim: &Aim) -> Result<(), LoadError> {
    answered(attempt, aim)?;
    let path = aim.dialect.path();
    if attempt.oddities.contains(&llm_observe::Oddity::NotStreamed) {
        return Err(LoadError::NotStreamed { path });
    }
    if attempt.clocks.first_token_s.is_none() {
        return Err(LoadError::Failed {
            path,
            message: "its stream held no token".to_owned(),
        });
    }
    Ok(())
}

/// Whether a request was answered.
fn answered(attempt: &Attempt, aim: &Aim) -> Result<(), LoadError> {
    let path = aim.dialect.path();
    let message = message(attempt);
    let kind = attempt.error.as_ref().and_then(|e| e.kind.as_deref());
    Err(match (attempt.outcome, attempt.refusal) {
        (Outcome::Complete, _) => return Ok(()),
        (Outcome::Unreachable, _) => LoadError::Unreachable(message),
        (_, Some(RefusalKind::Auth)) => LoadError::Auth { message },
        (_, Some(RefusalKind::UnknownModel)) => LoadError::UnknownModel {
            model: aim.model.clone(),
            message,
        },
        (Outcome::Stalled, _) => LoadError::Stalled { path, message },
        (Outcome::UpstreamError, _) if kind == Some(exchange::HTML) => {
            LoadError::Html { path, message }
        }
        (Outcome::Refused | Outcome::Overloaded, _) => LoadError::Refused { path, message },
        _ => LoadError::Failed { path, message },
    })
}

/// The beginning of what a server says, which may be a page, as one line.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

/// Status and words of an answer, for people.
fn message(attempt: &Attempt) -> String {
    let said = attempt.error.as_ref().map(|e| one_line(&e.message));
    match (attempt.status, said) {
        (Some(status @ 400..), Some(said)) if !said.is_empty() => format!("{status}: {said}"),
        (_, Some(said)) if !said.is_empty() => said,
        (Some(status), _) => match attempt.outcome {
            Outcome::Truncated => format!("status {status}, and the stream closed before its end"),
            _ => format!("status {status}"),
        },
        (None, _) => "no answer".to_owned(),
    }
}
