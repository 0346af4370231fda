//! Byte ranges inside JSON text.
//!
//! Bodies are looked into without being turned into values: a 64 MiB prompt costs no second copy,
//! and a change can be spliced in at an offset, so that every other byte stays as the client wrote
//! it. The text must be known to be JSON ([`is_json`]); on anything else the walk gives `None` or
//! nonsense ranges, but never a panic.

use std::ops::Range;

use memchr::memchr2;
use serde::de::IgnoredAny;

/// Whether `text` is one JSON value.
pub(super) fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// A value's place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value(pub(super) Range<usize>);

impl Value {
    /// The text's outermost value.
    pub(super) fn root(text: &[u8]) -> Option<Self> {
        let start = skip_space(text, 0);
        (start < text.len()).then_some(Self(start..text.len()))
    }

    fn first_byte(&self, text: &[u8]) -> Option<u8> {
        text.get(self.0.start).copied()
    }

    pub(super) fn is_string(&self, text: &[u8]) -> bool {
        self.first_byte(text) == Some(b'"')
    }

    pub(super) fn is_array(&self, text: &[u8]) -> bool {
        self.first_byte(text) == Some(b'[')
    }

    pub(super) fn is_object(&self, text: &[u8]) -> bool {
        self.first_byte(text) == Some(b'{')
    }

    pub(super) fn is_null(&self, text: &[u8]) -> bool {
        self.first_byte(text) == Some(b'n')
    }

    /// The offset just inside the opening quote, bracket or brace.
    pub(super) fn inside(&self) -> usize {
        self.0.start + 1
    }

    /// The value read as `T`; `None` when it is something else.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&self, text: &[u8]) -> Option<T> {
        serde_json::from_slice(text.get(self.0.clone())?).ok()
    }

    /// Elements of an array; empty for anything else.
    pub(super) fn elements(&self, text: &[u8]) -> Vec<Self> {
        let mut found = Vec::new();
        if !self.is_array(text) {
            return found;
        }
        let mut at = skip_space(text, self.inside());
        while text.get(at).is_some_and(|&b| b != b']') {
            let Some(end) = skip_value(text, at) else {
                break;
            };
            found.push(Self(at..end));
            at = skip_separator(text, end, b',');
        }
        found
    }

    /// The member `name` of an object. Of several, the last, as JSON readers commonly have it.
    pub(super) fn member(&self, text: &[u8], name: &str) -> Option<Self> {
        self.members(text)
            .into_iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// Members of an object, in order; empty for anything else.
    pub(super) fn members(&self, text: &[u8]) -> Vec<(String, Self)> {
        let mut found = Vec::new();
        if !self.is_object(text) {
            return found;
        }
        let mut at = skip_space(text, self.inside());
        while text.get(at) == Some(&b'"') {
            let Some(key_end) = skip_value(text, at) else {
                break;
            };
            let Some(key) = Self(at..key_end).read::<String>(text) else {
                break;
            };
            let start = skip_separator(text, key_end, b':');
            let Some(end) = skip_value(text, start) else {
                break;
            };
            found.push((key, Self(start..end)));
            at = skip_separator(text, end, b',');
        }
        found
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text
        .get(at)
        .is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
    {
        at += 1;
    }
    at
}

fn skip_separator(text: &[u8], at: usize, separator: u8) -> usize {
    let at = skip_space(text, at);
    if text.get(at) == Some(&separator) {
        skip_space(text, at + 1)
    } else {
        at
    }
}

/// The offset after the string that opens at `at`.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        match text.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The offset after the value that starts at `at`. Depth is counted, not recursed into.
fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => skip_string(text, at),
        b'{' | b'[' => {
            let (mut at, mut depth) = (at, 0_usize);
            loop {
                match text.get(at)? {
                    b'"' => at = skip_string(text, at)?,
                    open_or_close => {
                        match open_or_close {
                            b'{' | b'[' => depth += 1,
                            b'}' | b']' => depth -= 1,
                            _ => {}
                        }
                        at += 1;
                        if depth == 0 {
                            return Some(at);
                        }
                    }
                }
            }
        }
        _ => {
            let length = text[at..]
                .iter()
                .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                .unwrap_or(text.len() - at);
            (length > 0).then_some(at + length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = br#" {"a" : [1, {"x":"]"}, "\"}" ,[[]],null], "b":{"c":-1.5e3} ,"\u0064":true, "a2":"", "b": "last"} "#;

    #[test]
    fn members_and_elements_are_found_with_their_ranges() {
        let root = Value::root(TEXT).unwrap();
        let names: Vec<String> = root
            .members(TEXT)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["a", "b", "d", "a2", "b"]);
        let elements: Vec<&[u8]> = root
            .member(TEXT, "a")
            .unwrap()
            .elements(TEXT)
            .into_iter()
            .map(|v| &TEXT[v.0])
            .collect();
        let want: [&[u8]; 5] = [b"1", br#"{"x":"]"}"#, br#""\"}""#, b"[[]]", b"null"];
        assert_eq!(elements, want);
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let root = Value::root(TEXT).unwrap();
        assert_eq!(
            root.member(TEXT, "b")
                .unwrap()
                .read::<String>(TEXT)
                .as_deref(),
            Some("last")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_walk_panic(text in proptest::collection::vec(
            proptest::sample::select(br#"{}[]",:\ a1n"#.to_vec()), 0..60)) {
            if let Some(root) = Value::root(&text) {
                for (_, value) in root.members(&text) { value.elements(&text); }
                for value in root.elements(&text) { value.members(&text); }
            }
        }
    }
}
