//! The common prefix of two prompts, and where it ends.

use std::sync::Arc;

use super::prompt::Prompt;
use crate::PrefixBreak;

/// What the prompt `next` has in common with the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// Bytes that are the same from the start on.
    pub bytes: u64,
    /// Where `next` departs; `None` when it holds all of the one before.
    pub breaks_at: Option<PrefixBreak>,
}

/// Compares two prompts as a server lays them out.
pub fn common_prefix(before: &Prompt, next: &Prompt) -> Common {
    let mut same = 0_u64;
    let mut others = before.pieces();
    for (path, piece) in next.pieces() {
        let Some((_, other)) = others.next() else {
            return Common {
                bytes: same,
                breaks_at: None,
            };
        };
        if Arc::ptr_eq(piece, other) {
            same += piece.bytes.len() as u64;
            continue;
        }
        let here = common_start(&other.bytes, &piece.bytes);
        same += here as u64;
        if here == other.bytes.len() && here == piece.bytes.len() {
            continue;
        }
        // The one before ends here as a whole: a message that goes on is still its extension.
        if here == other.bytes.len() && others.next().is_none() {
            return Common {
                bytes: same,
                breaks_at: None,
            };
        }
        let (field, byte) = piece.field(here.min(piece.bytes.len()));
        return Common {
            bytes: same,
            breaks_at: Some(PrefixBreak {
                field: format!("{path}{field}"),
                byte,
            }),
        };
    }
    // `next` is over: it departs where the one before goes on.
    let breaks_at = others.next().map(|(path, _)| PrefixBreak {
        field: path.clone(),
        byte: 0,
    });
    Common {
        bytes: same,
        breaks_at,
    }
}

/// Equal bytes at the start.
pub(super) fn common_start(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
thread_local! {
    /// How many texts were compared.
    pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Whether two texts are mostly the same, a change in their middle left out: at least
/// `percent` of the longer one stands at their starts and ends.
pub(super) fn is_similar(a: &[u8], b: &[u8], percent: usize) -> bool {
    #[cfg(test)]
    COMPARED.with(|n| n.set(n.get() + 1));
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    let start = common_start(a, b);
    let left = short - start;
    let end = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take(left)
        .take_while(|(x, y)| x == y)
        .count();
    (start + end) * 100 >= long * percent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::threads::Pieces;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn both(a: &Value, b: &Value) -> (Prompt, Prompt) {
        let mut pieces = Pieces::default();
        let mut read = |body: &Value| {
            let body = body.to_string();
            Prompt::read(Dialect::AnthropicMessages, body.as_bytes(), &mut pieces).unwrap()
        };
        (read(a), read(b))
    }

    fn field(a: &Value, b: &Value) -> Option<(String, u64)> {
        let (a, b) = both(a, b);
        common_prefix(&a, &b).breaks_at.map(|b| (b.field, b.byte))
    }

    #[test]
    fn a_longer_conversation_does_not_break_the_prefix() {
        let a = json!({"system": "s", "messages": [{"role": "user", "content": "hi"}]});
        let mut b = a.clone();
        b["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "assistant", "content": "ho"}));
        assert_eq!(field(&a, &b), None);
        assert!(field(&b, &a).is_some(), "a shorter one does");
    }

    #[test]
    fn the_break_is_named_by_field_and_byte() {
        let body = |line: &str, tool: &str, text: &str| {
            json!({
                "system": [{"type": "text", "text": format!("header: {line};")}, {"type": "text", "text": "be good"}],
                "tools": [{"name": "Read", "description": tool, "input_schema": {"type": "object"}}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": text}]},
                    {"role": "assistant", "content": "ok"}],
            })
        };
        let base = body("aa", "reads", "hello");
        let at = |other| field(&base, &other).unwrap();
        assert_eq!(at(body("ab", "reads", "hello")), ("system[0]".into(), 9));
        assert_eq!(
            at(body("aa", "reaps", "hello")),
            ("tools[0].description".into(), 3)
        );
        assert_eq!(
            at(body("aa", "reads", "help")),
            ("messages[0].content[0].text".into(), 3)
        );
    }

    fn any_prompt() -> impl Strategy<Value = Value> {
        let text = || proptest::sample::select(vec!["", "a", "ab", "b", "ü", "abc"]);
        let message = (text(), any::<bool>()).prop_map(|(t, blocks)| {
            let content = if blocks {
                json!([{"type": "text", "text": t}])
            } else {
                json!(t)
            };
            json!({"role": "user", "content": content})
        });
        let tool = text().prop_map(|t| json!({"name": t, "input_schema": {"type": t}}));
        (
            text(),
            proptest::collection::vec(tool, 0..3),
            proptest::collection::vec(message, 0..4),
        )
            .prop_map(|(system, tools, messages)| {
                json!({"system": system, "tools": tools, "messages": messages})
            })
    }

    proptest! {
        #[test]
        fn the_common_prefix_is_symmetric_and_never_longer_than_either(a in any_prompt(), b in any_prompt()) {
            let (a, b) = both(&a, &b);
            let (ab, ba) = (common_prefix(&a, &b), common_prefix(&b, &a));
            prop_assert_eq!(ab.bytes, ba.bytes);
            prop_assert!(ab.bytes <= a.bytes() && ab.bytes <= b.bytes());
            let bytes = |p: &Prompt| -> Vec<u8> { p.pieces().flat_map(|(_, x)| x.bytes.clone()).collect() };
            prop_assert_eq!(ab.bytes, common_start(&bytes(&a), &bytes(&b)) as u64);
            prop_assert_eq!(ab.breaks_at.is_none(), ab.bytes == a.bytes());
        }
    }
}
