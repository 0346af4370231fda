//! serde's messages in plain English. serde tells what is wrong only as text, so it is read here and
//! nowhere else; a text of another form is passed on as it is.

use super::names::{nearest, unknown_but_near};

/// What serde says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A field is missing: its name.
    Missing(String),
    /// A field does not exist.
    Unknown {
        /// Its name.
        name: String,
        /// What to say.
        problem: String,
    },
    /// Anything else, as it is to be said.
    Other(String),
}

/// Reads a message.
pub fn read(message: &str) -> Message {
    let message = message.trim_end().replace('\n', "; ");
    if let Some(name) = message.strip_prefix("missing field `") {
        return Message::Missing(name.trim_end_matches('`').to_owned());
    }
    for (start, kind) in [("unknown field `", "field"), ("unknown variant `", "value")] {
        let found = message.strip_prefix(start);
        if let Some((name, rest)) = found.and_then(|rest| rest.split_once('`')) {
            let problem = unknown(kind, name, rest);
            return match kind {
                "field" => Message::Unknown {
                    name: name.to_owned(),
                    problem,
                },
                _ => Message::Other(problem),
            };
        }
    }
    let wrong = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    Message::Other(
        match wrong.and_then(|rest| rest.rsplit_once(", expected ")) {
            Some((found, wanted)) => format!("must be {}, not {}", kind_of(wanted), value(found)),
            None => message,
        },
    )
}

/// `rest` is ", expected one of `a`, `b`" or the like.
fn unknown(kind: &str, name: &str, rest: &str) -> String {
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    // Field names are short: a hint must be nearer than for names of profiles.
    let is_near = |near: &&str| strsim::damerau_levenshtein(name, near) * 3 <= near.chars().count();
    let near = nearest(name, known.iter().copied()).filter(is_near);
    unknown_but_near(kind, name, known.iter().copied(), near)
}

fn kind_of(wanted: &str) -> &str {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if wanted.starts_with("struct ") => "a table",
        _ => wanted,
    }
}

fn value(found: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => value.trim_matches('`').to_owned(),
        Some(("floating", rest)) => rest
            .trim_start_matches("point ")
            .trim_matches('`')
            .to_owned(),
        _ if found == "sequence" => "a list".to_owned(),
        _ if found == "map" => "a table".to_owned(),
        _ => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_and_values_are_told_without_the_words_of_rust() {
        for (message, wanted) in [
            (
                "invalid type: string \"x\", expected u64",
                "must be a whole number of 0 or more, not the text \"x\"",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "must be a whole number of 0 or more, not -1",
            ),
            (
                "invalid type: floating point `1.5`, expected a string",
                "must be a text, not 1.5",
            ),
            (
                "invalid type: map, expected a sequence",
                "must be a list, not a table",
            ),
            (
                "invalid type: boolean `true`, expected struct RawDiff",
                "must be a table, not true",
            ),
            (
                "unknown variant `magic`, expected `simulated` or `managed`",
                "unknown value \"magic\"; known: simulated, managed",
            ),
            ("something else", "something else"),
        ] {
            assert_eq!(read(message), Message::Other(wanted.to_owned()));
        }
    }
}
