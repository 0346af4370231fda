//! Takes the server's key out of what the server says.
//!
//! Some servers repeat a key that they do not like. An agent would print it, write it into files
//! and send it along with its next request, so it must not reach the agent in the first place. As
//! many asterisks take its place, so that lengths stay what they were.

use bytes::{Bytes, BytesMut};
use hyper::http::HeaderMap;
use hyper::http::header::HeaderValue;
use memchr::memmem;

use crate::Secret;

/// Stands for each byte of a key.
const ASTERISK: u8 = b'*';
/// A shorter key is no secret but a word (`EMPTY`, `none`, `lm-studio`) for servers that want any
/// key at all, and words stand in answers by themselves.
const SHORTEST_SECRET: usize = 12;

/// Looks for one key in bytes that arrive in pieces. Only what may be the beginning of the key is
/// held back, until the next piece shows whether it is; the end of an event never is.
pub struct Mask {
    key: Vec<u8>,
    held: BytesMut,
}

impl Mask {
    /// `None` without a key, and for keys that are too short to be secret.
    pub fn of(key: Option<&Secret>) -> Option<Self> {
        let key = key?.expose().as_bytes();
        (key.len() >= SHORTEST_SECRET).then(|| Self::on(key))
    }

    fn on(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            held: BytesMut::new(),
        }
    }

    /// The piece, as it may go on.
    pub fn piece(&mut self, piece: Bytes) -> Bytes {
        let clean = self.held.is_empty()
            && memmem::find(&piece, &self.key).is_none()
            && self.beginning_at_end(&piece) == 0;
        if clean {
            return piece;
        }
        let mut whole = self.held.split();
        whole.extend_from_slice(&piece);
        self.cover(&mut whole);
        let held = self.beginning_at_end(&whole);
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

    /// Response headers without the key.
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

    fn whole(&self, text: Bytes) -> Bytes {
        if memmem::find(&text, &self.key).is_none() {
            return text;
        }
        let mut text = text.to_vec();
        self.cover(&mut text);
        text.into()
    }

    /// Puts asterisks over every key; whether there was one.
    fn cover(&self, bytes: &mut [u8]) -> bool {
        let found: Vec<usize> = memmem::find_iter(bytes, &self.key).collect();
        for at in &found {
            bytes[*at..at + self.key.len()].fill(ASTERISK);
        }
        !found.is_empty()
    }

    /// The length of the longest end of `bytes` with which a key may begin.
    fn beginning_at_end(&self, bytes: &[u8]) -> usize {
        (1..self.key.len())
            .rev()
            .find(|n| bytes.ends_with(&self.key[..*n]))
            .unwrap_or(0)
    }
}

/// A whole text without the key.
pub fn masked(key: &Secret, text: Bytes) -> Bytes {
    match Mask::of(Some(key)) {
        Some(mask) => mask.whole(text),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn through(key: &str, pieces: &[&[u8]]) -> Vec<u8> {
        let mut mask = Mask::on(key.as_bytes());
        let mut out = Vec::new();
        for piece in pieces {
            out.extend_from_slice(&mask.piece(Bytes::copy_from_slice(piece)));
        }
        out.extend(mask.rest().unwrap_or_default());
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
            let whole = Mask::on(key.as_bytes()).whole(Bytes::copy_from_slice(text));
            prop_assert_eq!(out.len(), text.len());
            prop_assert_eq!(&out[..], &whole[..]);
            prop_assert!(memmem::find(&out, key.as_bytes()).is_none());
        }
    }

    #[test]
    fn a_word_that_stands_for_a_key_is_left_in_answers() {
        for word in ["", "x", "EMPTY", "none", "lm-studio"] {
            assert!(Mask::of(Some(&Secret::new(word))).is_none(), "{word}");
            assert_eq!(
                masked(&Secret::new(word), "EMPTY x none".into()),
                "EMPTY x none"
            );
        }
    }

    #[test]
    fn what_cannot_be_the_beginning_of_the_key_is_never_held_back() {
        let mut mask = Mask::on(b"sk-1");
        assert_eq!(mask.piece("data: tasks\n\n".into()), "data: tasks\n\n");
        assert_eq!(mask.piece("task".into()), "ta");
        assert_eq!(mask.piece("-2".into()), "sk-2");
        assert_eq!(mask.rest(), None);
    }
}
