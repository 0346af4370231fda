//! A walkthrough made ready to play, and how a request is matched to it.

use crate::Step;
use crate::ask::{Ask, Part, Speaker};
use crate::walkthrough::Script;

/// What a session without tools may say before it is not looked at any more.
const SIDE_BYTES: usize = 64 << 10;
/// The same with tools.
const PROMPT_BYTES: usize = 1 << 20;

/// A walkthrough as a list of tool uses with what is said before each.
#[derive(Debug)]
pub struct Plan {
    /// Name of the task.
    pub name: String,
    /// Separates its tool-call ids from those of other walkthroughs.
    pub tag: u16,
    /// The prompt, normalised.
    prompt: String,
    /// Tool uses, in order.
    pub actions: Vec<Action>,
    /// What is said at the end.
    pub closing: String,
}

/// One tool use.
#[derive(Clone, Debug)]
pub struct Action {
    /// Text before it; may be empty.
    pub say: String,
    /// What is done; never a `Say`.
    pub step: Step,
}

impl Plan {
    /// Makes a script ready. What is said between steps is said before the next tool use, since
    /// an answer without a tool call would end the session.
    pub fn new(script: &Script) -> Self {
        let mut actions = Vec::new();
        let mut said: Vec<&str> = Vec::new();
        for step in &script.walkthrough.steps {
            match step {
                Step::Say { text } => said.push(text),
                Step::Read { say, .. }
                | Step::Search { say, .. }
                | Step::Edit { say, .. }
                | Step::Write { say, .. }
                | Step::Run { say, .. } => {
                    said.extend(say.as_deref());
                    actions.push(Action {
                        say: std::mem::take(&mut said).join("\n\n"),
                        step: step.clone(),
                    });
                }
            }
        }
        let closing = if said.is_empty() {
            "Done.".to_owned()
        } else {
            said.join("\n\n")
        };
        let prompt = normalise(&script.prompt);
        let tag = tag_of(&script.name, &prompt);
        Self {
            name: script.name.clone(),
            tag,
            prompt,
            actions,
            closing,
        }
    }
}

impl Action {
    /// The step as text, to follow "I could not".
    pub fn describe(&self) -> String {
        match &self.step {
            Step::Read { path, .. } => format!("read {path}"),
            Step::Search { pattern, .. } => format!("search for {pattern}"),
            Step::Edit { path, .. } => format!("edit {path}"),
            Step::Write { path, .. } => format!("write {path}"),
            Step::Run { command, .. } => format!("run `{command}`"),
            Step::Say { .. } => "say something".to_owned(),
        }
    }

    /// Whether a failed try is best followed by reading the file again: agents refuse to change
    /// a file that was not read, or that changed since.
    pub fn rereads(&self) -> bool {
        matches!(self.step, Step::Edit { .. } | Step::Write { .. })
    }

    /// The file it is about.
    pub fn path(&self) -> Option<&str> {
        match &self.step {
            Step::Read { path, .. } | Step::Edit { path, .. } | Step::Write { path, .. } => {
                Some(path)
            }
            Step::Search { path, .. } => path.as_deref(),
            Step::Run { .. } | Step::Say { .. } => None,
        }
    }
}

/// The plan whose whole prompt stands in what the user said; of several the longest, since a
/// prompt may contain another.
pub fn recognise<'p>(plans: &'p [Plan], ask: &Ask) -> Option<&'p Plan> {
    if plans.is_empty() {
        return None;
    }
    // Side requests are short, and no task's prompt is a book: long texts are not looked through.
    let limit = if ask.tools.is_empty() {
        SIDE_BYTES
    } else {
        PROMPT_BYTES
    };
    let mut said = String::new();
    for message in ask.messages.iter().filter(|m| m.speaker == Speaker::User) {
        for part in &message.parts {
            if let Part::Text(text) = part
                && said.len() + text.len() <= limit
            {
                said.push_str(text);
                said.push('\n');
            }
        }
    }
    let said = normalise(&said);
    plans
        .iter()
        .filter(|plan| said.contains(&plan.prompt))
        .max_by_key(|plan| plan.prompt.len())
}

/// Text without what agents change in a prompt: white space, and quotes that are added around it
/// and escaped inside.
pub fn normalise(text: &str) -> String {
    let bare: String = text.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sixteen bits of FNV-1a, the same in every process.
fn tag_of(name: &str, prompt: &str) -> u16 {
    let hash = name
        .bytes()
        .chain(prompt.bytes())
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let bytes = hash.to_le_bytes();
    u16::from_le_bytes([
        bytes[0] ^ bytes[2] ^ bytes[4] ^ bytes[6],
        bytes[1] ^ bytes[3] ^ bytes[5] ^ bytes[7],
    ])
}
