//! Takes secrets out of what is shown, stored or passed on.
//!
//! Some servers repeat a key that they do not like. An agent would print it, write it into files
//! and send it along with its next request. So the key must not reach the agent in the first place.
//! Each byte of it becomes an asterisk, so that lengths stay what they were.
//!
//! [`is_secret`] alone decides what counts as a secret.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::http::HeaderMap;
use hyper::http::header::HeaderValue;
use memchr::memmem;

/// Stands for each byte of a secret.
const ASTERISK: u8 = b'*';
/// Stands for a whole secret where the length may change.
const SHORT_FORM: &[u8] = b"***";
/// A value of this many bytes is a secret, whatever it is made of.
const LONG: usize = 12;
/// A shorter value is a secret only from this many bytes on, with a letter and a digit.
const SHORTEST: usize = 6;

/// Whether `value` is a secret: it has 12 bytes or more, or 6 or more with a letter and a digit
/// among them.
///
/// Anything else is a word (`EMPTY`, `none`, `lm-studio`) for servers that want any key at all.
/// Such words appear in answers by themselves, and answers must not be changed.
pub fn is_secret(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.bytes().any(|byte| kind(&byte));
    value.len() >= LONG
        || (value.len() >= SHORTEST && has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit))
}

/// Knows some secrets and takes them out of texts. Clones share them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first: a secret within another must not leave the rest of it behind.
    secrets: Arc<[Vec<u8>]>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms)", self.secrets.len())
    }
}

impl Redactor {
    /// For those of `values` that are secrets ([`is_secret`]), as they are and as they are written
    /// in JSON text.
    pub fn new<'s>(values: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = values.into_iter().filter(|value| is_secret(value));
        Self::of(secrets.flat_map(|secret| {
            let quoted = serde_json::Value::from(secret).to_string();
            let escaped = quoted.as_bytes()[1..quoted.len() - 1].to_vec();
            [secret.as_bytes().to_vec(), escaped]
        }))
    }

    /// This, and further values.
    pub fn and<'s>(&self, values: impl IntoIterator<Item = &'s str>) -> Self {
        let further = Self::new(values);
        Self::of(self.secrets.iter().chain(further.secrets.iter()).cloned())
    }

    fn of(secrets: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self {
            secrets: secrets.into(),
        }
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// `bytes` with an asterisk for each byte of a secret.
    pub fn bytes(&self, bytes: Bytes) -> Bytes {
        if !self.finds_in(&bytes) {
            return bytes;
        }
        let mut bytes = bytes.to_vec();
        self.cover(&mut bytes);
        bytes.into()
    }

    /// `text` with an asterisk for each byte of a secret. A text without one is not copied.
    pub fn text<'t>(&self, text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
        let text = text.into();
        if !self.finds_in(text.as_bytes()) {
            return text;
        }
        let mut bytes = text.into_owned().into_bytes();
        self.cover(&mut bytes);
        // Whole characters became asterisks, so nothing is lost here.
        String::from_utf8_lossy(&bytes).into_owned().into()
    }

    /// Covers secrets in the values of `headers`.
    pub fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            if self.cover(&mut bytes)
                && let Ok(masked) = HeaderValue::from_bytes(&bytes)
            {
                *value = masked;
            }
        }
    }

    /// `bytes` with `***` for each secret, the form of stored bodies; `None` when there is no
    /// secret in them.
    pub fn short_form(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut changed: Option<Vec<u8>> = None;
        for secret in self.secrets.iter() {
            let text = changed.as_deref().unwrap_or(bytes);
            let mut out = Vec::new();
            let mut from = 0;
            for at in memmem::find_iter(text, secret) {
                out.extend_from_slice(&text[from..at]);
                out.extend_from_slice(SHORT_FORM);
                from = at + secret.len();
            }
            if from > 0 {
                out.extend_from_slice(&text[from..]);
                changed = Some(out);
            }
        }
        changed
    }

    /// The same for bytes that arrive in pieces; `None` when there is nothing to take out.
    pub fn stream(&self) -> Option<StreamRedactor> {
        (!self.is_empty()).then(|| StreamRedactor {
            redactor: self.clone(),
            held: BytesMut::new(),
        })
    }

    fn finds_in(&self, bytes: &[u8]) -> bool {
        let found = |secret: &Vec<u8>| memmem::find(bytes, secret).is_some();
        self.secrets.iter().any(found)
    }

    /// Puts asterisks over every secret; whether there was one.
    fn cover(&self, bytes: &mut [u8]) -> bool {
        let mut covered = false;
        for secret in self.secrets.iter() {
            let found: Vec<usize> = memmem::find_iter(bytes, secret).collect();
            for at in &found {
                bytes[*at..at + secret.len()].fill(ASTERISK);
            }
            covered |= !found.is_empty();
        }
        covered
    }

    /// The length of the longest end of `bytes` with which a secret may begin.
    fn beginning_at_end(&self, bytes: &[u8]) -> usize {
        let longest = |secret: &Vec<u8>| {
            let mut ends = (1..secret.len()).rev();
            ends.find(|n| bytes.ends_with(&secret[..*n])).unwrap_or(0)
        };
        self.secrets.iter().map(longest).max().unwrap_or(0)
    }
}

/// Takes secrets out of bytes that arrive in pieces. It holds back only what may be the beginning
/// of a secret, until the next piece shows whether it is; the end of an event is never held back.
pub struct StreamRedactor {
    redactor: Redactor,
    held: BytesMut,
}

impl StreamRedactor {
    /// The piece, as it may go on.
    pub fn piece(&mut self, piece: Bytes) -> Bytes {
        let clean = self.held.is_empty()
            && !self.redactor.finds_in(&piece)
            && self.redactor.beginning_at_end(&piece) == 0;
        if clean {
            return piece;
        }
        let mut whole = self.held.split();
        whole.extend_from_slice(&piece);
        self.redactor.cover(&mut whole);
        let held = self.redactor.beginning_at_end(&whole);
        self.held = whole.split_off(whole.len() - held);
        whole.freeze()
    }

    /// Whether anything is held back.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// What is held back when no more will come.
    pub fn rest(&mut self) -> Option<Bytes> {
        (!self.held.is_empty()).then(|| self.held.split().freeze())
    }

    /// Covers secrets in the values of `headers`, trailers for instance.
    pub fn headers(&self, headers: &mut HeaderMap) {
        self.redactor.headers(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on(key: &str) -> Redactor {
        Redactor::of([key.as_bytes().to_vec()])
    }

    fn through(key: &str, pieces: &[&[u8]]) -> Vec<u8> {
        let mut stream = on(key).stream().unwrap();
        let mut out = Vec::new();
        for piece in pieces {
            out.extend_from_slice(&stream.piece(Bytes::copy_from_slice(piece)));
        }
        out.extend(stream.rest().unwrap_or_default());
        out
    }

    proptest! {
        #[test]
        fn every_chunking_gives_the_same_bytes_as_the_whole_and_the_same_length(
            // Few letters, so that keys, their beginnings and overlaps are common.
            text in "[ab]{0,60}",
            key in "[ab]{1,5}",
            cuts in proptest::collection::vec(0usize..61, 0..20),
        ) {
            let text = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            let out = through(&key, &pieces);
            let whole = on(&key).bytes(Bytes::copy_from_slice(text));
            prop_assert_eq!(out.len(), text.len());
            prop_assert_eq!(&out[..], &whole[..]);
            prop_assert!(memmem::find(&out, key.as_bytes()).is_none());
        }
    }

    #[test]
    fn a_word_that_stands_for_a_key_is_left_in_every_form() {
        for word in ["", "x", "EMPTY", "none", "ollama", "lm-studio", "123456"] {
            let redactor = Redactor::new([word]);
            assert!(redactor.is_empty() && redactor.stream().is_none(), "{word}");
            let text = format!("{word} x none");
            assert_eq!(redactor.text(text.clone()), text);
            assert_eq!(redactor.bytes(text.clone().into()), text);
            assert_eq!(redactor.short_form(text.as_bytes()), None);
        }
    }

    #[test]
    fn a_short_key_with_a_digit_and_any_long_one_are_taken_out_of_every_form() {
        for key in ["sk-1234", "hunter2", "correct-horse"] {
            let redactor = Redactor::new([key]);
            let text = format!("no such key: {key}!");
            let covered = format!("no such key: {}!", "*".repeat(key.len()));
            assert_eq!(redactor.text(text.clone()), covered);
            assert_eq!(redactor.bytes(text.clone().into()), covered);
            let mut stream = redactor.stream().unwrap();
            assert_eq!(stream.piece(text.clone().into()), covered);
            let short = redactor.short_form(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(short).unwrap(), "no such key: ***!");
            let mut headers = HeaderMap::new();
            headers.insert("x-echo", text.parse().unwrap());
            redactor.headers(&mut headers);
            assert_eq!(headers["x-echo"], covered);
        }
    }

    #[test]
    fn secrets_are_taken_out_also_as_they_are_written_in_json() {
        let redactor = Redactor::new(["sk-1234", "sk-1234-long", "with1\"quote", "abc"]);
        let redact = |text: &str| {
            let out = redactor.short_form(text.as_bytes())?;
            Some(String::from_utf8(out).unwrap())
        };
        assert_eq!(
            redact("a sk-1234 b sk-1234-long c").unwrap(),
            "a *** b *** c"
        );
        assert_eq!(redact(r#"{"k":"with1\"quote"}"#).unwrap(), r#"{"k":"***"}"#);
        assert_eq!(redact("abc and nothing else"), None);
        assert!(!format!("{redactor:?}").contains("1234"));
    }

    #[test]
    fn what_cannot_be_the_beginning_of_the_key_is_never_held_back() {
        let mut stream = on("sk-1").stream().unwrap();
        assert_eq!(stream.piece("data: tasks\n\n".into()), "data: tasks\n\n");
        assert_eq!(stream.piece("task".into()), "ta");
        assert_eq!(stream.piece("-2".into()), "sk-2");
        assert_eq!(stream.rest(), None);
    }
}
