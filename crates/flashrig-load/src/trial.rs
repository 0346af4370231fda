//! A small request that tries whether a server streams, takes tools, and how soon its first token
//! comes.

use serde_json::{Value, json};

use super::aim::LoadDialect;
use super::body::{Conversation, Output};
use super::calibrate::streamed;
use super::filler::{self, LINE_WORDS};
use super::{Aim, Ask, Client, LoadError};
use flashrig_clock::Origin;
use flashrig_record::{Attempt, Role};

/// The prompt that is the same in every dialect.
pub const READY: &str = "Reply with the word ready.";
/// Tokens of an answer at most.
const FEW: u32 = 16;
/// A tool call is longer than a word, and some models think before it.
const FOR_A_CALL: u32 = 128;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub enum Trial {
    /// [`READY`] alone.
    Ready,
    /// So many lines before it, which no other prompt has.
    Lines {
        /// Lines, of about 14 tokens each.
        lines: u64,
        /// Makes them unlike those of other prompts.
        seed: u64,
    },
    /// A question, and a tool that answers it.
    Tool,
}

/// Sends the request, on a connection of its own: there are servers that close a kept one on the
/// next request of some length, and that is not what is tried here. The row is there however it ended; the result says whether a stream with
/// tokens came, or for a tool an answer.
pub async fn trial(aim: &Aim, trial: Trial) -> (Attempt, Result<(), LoadError>) {
    let client = Client::new(aim.clone(), Origin::now());
    let output = Output {
        tokens: FEW,
        fixed: false,
    };
    let ask = match trial {
        Trial::Tool => Ask {
            session: "trial".to_owned(),
            role: Role::Probe,
            body: offer(aim.dialect, &aim.model).to_string().into(),
            messages: 1,
            max_tokens: FOR_A_CALL,
        },
        Trial::Ready | Trial::Lines { .. } => {
            let mut talk = Conversation::new(aim.dialect, &aim.model, output, 0);
            talk.user(|out| {
                if let Trial::Lines { lines, seed } = trial {
                    for number in 0..lines {
                        filler::line(seed, number, LINE_WORDS, out);
                    }
                }
                out.extend_from_slice(READY.as_bytes());
            });
            Ask {
                session: "trial".to_owned(),
                role: Role::Probe,
                body: talk.body(),
                messages: talk.messages(),
                max_tokens: FEW,
            }
        }
    };
    let attempt = client.ask(ask).await.attempt;
    let outcome = streamed(&attempt, aim);
    (attempt, outcome)
}

fn offer(dialect: LoadDialect, model: &str) -> Value {
    let name = "get_weather";
    let about = "Tells the weather in a city.";
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let tool = match dialect {
        LoadDialect::OpenaiChat => json!({
            "type": "function",
            "function": {"name": name, "description": about, "parameters": schema},
        }),
        LoadDialect::AnthropicMessages => {
            json!({"name": name, "description": about, "input_schema": schema})
        }
    };
    let question = "What is the weather in Paris now? Use the tool.";
    json!({
        "model": model,
        "stream": true,
        "max_tokens": FOR_A_CALL,
        "messages": [{"role": "user", "content": question}],
        "tools": [tool],
    })
}
