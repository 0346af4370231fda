//! The simulator's tokenizer: four bytes a token for prompts, four characters a token for
//! answers. Deterministic and close enough to real tokenizers on code and English.

/// Bytes of prompt text per token.
const PROMPT_BYTES: usize = 4;
/// Characters of answer text per token.
const ANSWER_CHARS: usize = 4;

/// Tokens of a prompt, at least one.
pub fn count(text: &str) -> u64 {
    (text.len().div_ceil(PROMPT_BYTES)).max(1) as u64
}

/// Cuts answer text into token-sized pieces; empty text gives none.
pub fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::with_capacity(text.len() / ANSWER_CHARS + 1);
    let mut piece = String::with_capacity(ANSWER_CHARS);
    for (n, ch) in text.chars().enumerate() {
        if n > 0 && n % ANSWER_CHARS == 0 {
            pieces.push(std::mem::take(&mut piece));
        }
        piece.push(ch);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Hashes of the prompt's full blocks, each chained to those before it, so that two prompts share
/// exactly as many leading hashes as they share leading blocks.
pub fn block_chain(text: &str, block_tokens: u32) -> Vec<u64> {
    use std::hash::{DefaultHasher, Hasher};
    let block_bytes = block_tokens as usize * PROMPT_BYTES;
    let mut chain = 0u64;
    text.as_bytes()
        .chunks_exact(block_bytes)
        .map(|block| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(chain);
            hasher.write(block);
            chain = hasher.finish();
            chain
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text_and_keep_characters_whole() {
        let text = "naïve → 日本語 text";
        assert_eq!(pieces(text).concat(), text);
        assert!(
            pieces(text)
                .iter()
                .all(|p| p.chars().count() <= ANSWER_CHARS)
        );
        assert!(pieces("").is_empty());
    }

    #[test]
    fn equal_prefixes_share_their_leading_hashes_and_a_change_at_the_start_shares_none() {
        let a = "x".repeat(1000);
        let b = format!("{}{}", "x".repeat(600), "y".repeat(400));
        let c = format!("n{}", "x".repeat(999));
        let (a, b, c) = (
            block_chain(&a, 64),
            block_chain(&b, 64),
            block_chain(&c, 64),
        );
        assert_eq!(a.len(), 3);
        assert_eq!(a[..2], b[..2]);
        assert_ne!(a[2], b[2]);
        assert!(a.iter().all(|h| !c.contains(h)));
    }
}
