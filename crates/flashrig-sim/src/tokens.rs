//! The simulator's tokenizer: four bytes a token for prompts, four characters a token for
//! answers. Deterministic and close enough to real tokenizers on code and English.
//!
//! Prompts have a megabyte and at speed 200 a simulated second has five milliseconds, so that
//! everything here passes over a text once, eight bytes at a time.

/// Bytes of prompt text per token.
const PROMPT_BYTES: usize = 4;
/// Characters of answer text per token.
pub const ANSWER_CHARS: usize = 4;

/// Tokens of a prompt, at least one.
pub fn count(text: &str) -> u64 {
    (text.len().div_ceil(PROMPT_BYTES)).max(1) as u64
}

/// Tokens of answer text; none of empty text.
pub fn answer_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(ANSWER_CHARS)
}

/// The first `tokens` tokens of answer text.
pub fn first_tokens(text: &str, tokens: usize) -> &str {
    let chars = tokens.saturating_mul(ANSWER_CHARS);
    let end = text.char_indices().nth(chars).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

/// Hashes of full blocks, each chained to those before it, so that two texts share exactly as
/// many leading hashes as they share leading blocks. A text that grows goes on where it was.
pub struct BlockChain {
    block_bytes: usize,
    hashes: Vec<u64>,
}

impl BlockChain {
    /// No blocks yet.
    pub fn new(block_tokens: u32) -> Self {
        Self {
            block_bytes: block_tokens as usize * PROMPT_BYTES,
            hashes: Vec::new(),
        }
    }

    /// Goes on to the last full block of `text`, which begins with the text before. Returns how
    /// many blocks there are.
    pub fn extend_to(&mut self, text: &str) -> usize {
        let done = self.hashes.len() * self.block_bytes;
        let mut chain = self.hashes.last().copied().unwrap_or(0);
        let rest = text.as_bytes().get(done..).unwrap_or_default();
        self.hashes.reserve(rest.len() / self.block_bytes);
        for block in rest.chunks_exact(self.block_bytes) {
            chain = hash(chain, block);
            self.hashes.push(chain);
        }
        self.hashes.len()
    }

    /// The hashes.
    pub fn into_hashes(self) -> Vec<u64> {
        self.hashes
    }
}

/// Folds a block into `seed`, two words at a time in two lanes; not for adversaries.
fn hash(seed: u64, block: &[u8]) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xe703_7ed1_a0b4_28db;
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are wanted")]
        let halves = (wide as u64) ^ ((wide >> 64) as u64);
        halves
    };
    let (pairs, rest) = block.as_chunks::<16>();
    let mut state = seed ^ A;
    for pair in pairs {
        let wide = u128::from_le_bytes(*pair);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are wanted")]
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        state = fold(low ^ state, high ^ B).wrapping_add(state.rotate_left(23));
    }
    for byte in rest {
        state = fold(state ^ u64::from(*byte), A);
    }
    // Zero is a chain that has not begun.
    fold(state ^ B, A ^ block.len() as u64) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_chain(text: &str) -> Vec<u64> {
        let mut chain = BlockChain::new(64);
        chain.extend_to(text);
        chain.into_hashes()
    }

    #[test]
    fn answers_are_cut_between_characters() {
        let text = "naïve → 日本語 text";
        assert_eq!(answer_tokens(text), 4);
        assert_eq!(first_tokens(text, 2), "naïve → ");
        assert_eq!(first_tokens(text, 9), text);
        assert_eq!((answer_tokens(""), first_tokens("", 3)), (0, ""));
    }

    #[test]
    fn equal_prefixes_share_their_leading_hashes_and_a_change_at_the_start_shares_none() {
        let a = block_chain(&"x".repeat(1000));
        let b = block_chain(&format!("{}{}", "x".repeat(600), "y".repeat(400)));
        let c = block_chain(&format!("n{}", "x".repeat(999)));
        assert_eq!(a.len(), 3);
        assert_eq!(a[..2], b[..2]);
        assert_ne!(a[2], b[2]);
        assert!(a.iter().all(|h| !c.contains(h)));
    }

    #[test]
    fn every_byte_of_a_block_counts() {
        let text: Vec<u8> = (0..256u32).map(|n| b'a' + (n % 26) as u8).collect();
        let before = block_chain(std::str::from_utf8(&text).unwrap());
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] = b'Z';
            assert_ne!(block_chain(std::str::from_utf8(&changed).unwrap()), before);
        }
    }

    #[test]
    fn a_chain_that_grows_is_that_of_the_whole_text() {
        let text = "abcdefgh".repeat(200);
        let mut chain = BlockChain::new(64);
        assert_eq!(chain.extend_to(&text[..700]), 2);
        chain.extend_to(&text);
        assert_eq!(chain.into_hashes(), block_chain(&text));
    }
}
