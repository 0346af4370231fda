//! How many tokens the server counts for each part of a prompt.

use std::time::Duration;

use super::body::{Conversation, Output};
use super::filler::{self, LINE_WORDS};
use super::prompt::Recipe;
use super::sizing::Parts;
use super::{Aim, Answer, Ask, Client, LoadDialect, LoadError, LoadLimits, exchange};
use crate::clock::Origin;
use crate::gateway::Upstream;
use crate::records::{Attempt, Calibration, End, RefusalKind, Role};

/// A first request may load the model.
const FIRST_REQUEST: Duration = Duration::from_secs(600);
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
///
/// # Errors
/// It streams in neither, or is no LLM server; with what it said.
pub async fn choose_dialect(upstream: &Upstream, model: &str) -> Result<LoadDialect, LoadError> {
    let mut no_route = Vec::new();
    let mut first_trouble = None;
    for dialect in [LoadDialect::OpenaiChat, LoadDialect::AnthropicMessages] {
        let aim = Aim {
            upstream: upstream.clone(),
            model: model.to_owned(),
            dialect,
            limits: LoadLimits {
                first_token: FIRST_REQUEST,
                silence: FIRST_REQUEST,
            },
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
                | LoadError::Auth { .. }
                | LoadError::UnknownModel { .. }),
            ) => return Err(trouble),
            Err(_) if answer.attempt.refusal == Some(RefusalKind::UnknownRoute) => {
                no_route.push(words(&answer.attempt));
            }
            Err(trouble) => {
                no_route.push(words(&answer.attempt));
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
/// fields that fix an answer's length. Six short requests, one after the other.
///
/// # Errors
/// The server does not stream, tells no usage, refuses, or fails.
pub async fn calibrate(client: &Client, seed: u64) -> Result<Calibration, LoadError> {
    let fixed_output = fixes_length(client).await?;
    let small = Sample::default();
    let few = count(client, seed, small).await?;
    let many = count(
        client,
        seed,
        Sample {
            lines: SMALL_LINES + u64::from(MORE_LINES),
            ..small
        },
    )
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
    let with_facts = count(client, seed, facts).await?;
    let short_lines = Sample {
        short_lines: SAMPLES,
        ..small
    };
    let with_short_lines = count(client, seed, short_lines).await?;
    let question = Sample {
        question: true,
        ..small
    };
    let with_question = count(client, seed, question).await?;

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

/// Whether the server takes the fields that fix an answer's length, and keeps to them.
async fn fixes_length(client: &Client) -> Result<bool, LoadError> {
    let output = |fixed| Output { tokens: FEW, fixed };
    let answer = client.ask(ready(client, output(true))).await;
    let attempt = &answer.attempt;
    let is_about_fields = attempt.end == End::Refused
        && matches!(attempt.status, Some(400 | 422))
        && attempt.refusal != Some(RefusalKind::UnknownModel);
    if !is_about_fields {
        let tokens = usage(attempt, client.aim())?.1;
        return Ok(tokens == u64::from(FEW));
    }
    let Answer { attempt, .. } = client.ask(ready(client, output(false))).await;
    usage(&attempt, client.aim())?;
    Ok(false)
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

/// A request that a model answers with one word when it is let.
fn ready(client: &Client, output: Output) -> Ask {
    let aim = client.aim();
    let mut talk = Conversation::new(aim.dialect, &aim.model, output, 0);
    talk.user(|out| out.extend_from_slice(b"Reply with the word ready."));
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

/// The server's count of a prompt.
async fn count(client: &Client, seed: u64, sample: Sample) -> Result<u64, LoadError> {
    let aim = client.aim();
    let output = Output {
        tokens: 1,
        fixed: false,
    };
    let recipe = Recipe {
        seed,
        salt: filler::mix(seed),
        shared_prefix: false,
        facts: sample.facts,
    };
    let mut talk = Conversation::new(aim.dialect, &aim.model, output, 32 * 1024);
    talk.user(|out| {
        for number in 0..sample.short_lines {
            filler::line(!seed, u64::from(number), SHORT_WORDS, out);
        }
        let parts = Parts {
            lines: sample.lines,
            words: None,
        };
        recipe.first(parts, out);
    });
    if sample.question {
        talk.assistant(".");
        talk.user(|out| recipe.question(1, out));
    }
    let Answer { attempt, .. } = client
        .ask(Ask {
            session: "calibration".to_owned(),
            role: Role::Probe,
            body: talk.body(),
            messages: talk.messages(),
            max_tokens: output.tokens,
        })
        .await;
    answered(&attempt, aim)?;
    attempt
        .input_tokens
        .filter(|tokens| *tokens > 0)
        .ok_or(LoadError::NoUsage {
            path: aim.dialect.path(),
        })
}

/// Whether a request was answered by a stream with tokens in it.
fn streamed(attempt: &Attempt, aim: &Aim) -> Result<(), LoadError> {
    answered(attempt, aim)?;
    let path = aim.dialect.path();
    if attempt
        .oddities
        .iter()
        .any(|odd| odd == exchange::NOT_STREAMED)
    {
        return Err(LoadError::NotStreamed { path });
    }
    if attempt.clocks.first_token_s.is_none() {
        return Err(LoadError::Failed {
            path,
            words: "its stream held no token".to_owned(),
        });
    }
    Ok(())
}

/// Whether a request was answered.
fn answered(attempt: &Attempt, aim: &Aim) -> Result<(), LoadError> {
    let path = aim.dialect.path();
    let words = words(attempt);
    let kind = attempt.error.as_ref().and_then(|e| e.kind.as_deref());
    Err(match (attempt.end, attempt.refusal) {
        (End::Complete, _) => return Ok(()),
        (End::Unreachable, _) => LoadError::Unreachable(words),
        (_, Some(RefusalKind::Auth)) => LoadError::Auth { words },
        (_, Some(RefusalKind::UnknownModel)) => LoadError::UnknownModel {
            model: aim.model.clone(),
            words,
        },
        (End::UpstreamError, _) if kind == Some(exchange::HTML) => LoadError::Html { path, words },
        (End::Refused | End::Overloaded, _) => LoadError::Refused { path, words },
        _ => LoadError::Failed { path, words },
    })
}

/// Status and words of an answer, for people.
fn words(attempt: &Attempt) -> String {
    let said = attempt.error.as_ref().map(|e| e.message.as_str());
    match (attempt.status, said) {
        (Some(status @ 400..), Some(said)) if !said.is_empty() => format!("{status}: {said}"),
        (_, Some(said)) if !said.is_empty() => said.to_owned(),
        (Some(status), _) => match attempt.end {
            End::Truncated => format!("status {status}, and the stream closed before its end"),
            _ => format!("status {status}"),
        },
        (None, _) => "no answer".to_owned(),
    }
}
