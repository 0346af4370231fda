//! Answers to requests that offer no tools: titles, summaries, checks.

use super::schema;
use super::script::Plan;
use crate::ask::{Ask, Part, Speaker};
use crate::reply::Reply;

/// Words in a title.
const TITLE_WORDS: usize = 6;

/// A short plausible answer.
pub fn answer(ask: &Ask, plan: Option<&Plan>) -> Reply {
    let title = title(ask, plan);
    if let Some(wanted) = &ask.answer_schema {
        return Reply::text(schema::fill(wanted, &title).to_string());
    }
    if asks_for_title(ask) {
        return Reply::text(title);
    }
    Reply::text(format!("Understood. This is about: {title}."))
}

fn asks_for_title(ask: &Ask) -> bool {
    mentions_title(&ask.system) || user_texts(ask).any(mentions_title)
}

/// Whether a text has the word, as people write it; a prompt may be a megabyte long.
fn mentions_title(text: &str) -> bool {
    let has = |word: &str| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some();
    has("title") || has("Title") || has("TITLE")
}

fn user_texts(ask: &Ask) -> impl DoubleEndedIterator<Item = &str> {
    let parts = ask
        .messages
        .iter()
        .filter(|m| m.speaker != Speaker::Assistant)
        .flat_map(|m| &m.parts);
    parts.filter_map(|part| {
        if let Part::Text(text) = part {
            Some(text.as_str())
        } else {
            None
        }
    })
}

/// The task's name as text, else the first words of what the user said last.
fn title(ask: &Ask, plan: Option<&Plan>) -> String {
    let message = match plan {
        Some(plan) => plan.name.replace(['-', '_'], " "),
        None => user_texts(ask).next_back().unwrap_or("Untitled").to_owned(),
    };
    let message: Vec<&str> = message
        .split_whitespace()
        .map(|w| w.trim_matches('"'))
        .take(TITLE_WORDS)
        .collect();
    let message = message.join(" ");
    let mut chars = message.chars();
    chars.next().map_or_else(
        || "Untitled".to_owned(),
        |first| first.to_uppercase().chain(chars).collect(),
    )
}
