//! The server's count of a prompt's tokens, held against the prompt's bytes: a prompt that holds the
//! whole of the one before and more cannot have as few tokens (case M1).

use flashrig_record::{Attempt, CutPrompts};

/// Growth below this proves nothing: some dozens of tokens, and counts may be rounded.
const GROWN_BYTES: u64 = 2000;
/// Counts that differ by less than this share are the same count.
const SAME_COUNT: f64 = 0.02;
/// A count below this share of what the bytes let expect is too small to be the whole prompt.
const TOO_FEW: f64 = 0.85;

/// The requests of a session whose prompt the server cut; `None` when there are none.
///
/// A server that leaves cached tokens out of its count is not taken for one: its count falls to what
/// is new, and does not stay where it was.
pub fn cut_prompts(attempts: &[Attempt]) -> Option<CutPrompts> {
    let cut: Vec<u64> = attempts
        .iter()
        .filter(|later| is_cut(attempts, later))
        .filter_map(|later| later.input_tokens)
        .collect();
    Some(CutPrompts {
        requests: cut.len() as u64,
        tokens: cut.into_iter().max()?,
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn is_cut(attempts: &[Attempt], later: &Attempt) -> bool {
    let found = || {
        let prefix = later.prefix.as_ref().filter(|p| p.breaks_at.is_none())?;
        let earlier = attempts.iter().find(|a| a.number == prefix.previous)?;
        let counts = (earlier.input_tokens?, later.input_tokens?);
        Some((counts, prefix.common_bytes, prefix.total_bytes))
    };
    let Some(((before, now), had, has)) = found() else {
        return false;
    };
    let (before, now) = (before as f64, now as f64);
    let expected = before * has as f64 / had.max(1) as f64;
    has.saturating_sub(had) >= GROWN_BYTES
        && (now - before).abs() <= before * SAME_COUNT
        && now < expected * TOO_FEW
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::attempt;
    use flashrig_record::{Outcome, PrefixFact, Role};

    /// Requests of one thread, each with the bytes of its prompt and the tokens that are counted.
    fn thread(turns: &[(u64, u64)]) -> Vec<Attempt> {
        let mut had = None;
        turns
            .iter()
            .zip(1u32..)
            .map(|(&(bytes, tokens), number)| {
                let mut a = attempt(Role::Main, Outcome::Complete, 0.0, Some(1.0), 2.0);
                (a.number, a.input_tokens) = (number, Some(tokens));
                a.prefix = had.map(|common_bytes| PrefixFact {
                    previous: number - 1,
                    common_bytes,
                    total_bytes: bytes,
                    breaks_at: None,
                    reusable_tokens: None,
                    reused_tokens: None,
                });
                had = Some(bytes);
                a
            })
            .collect()
    }

    #[test]
    fn a_count_that_stays_while_the_prompt_grows_is_a_cut_prompt() {
        let turns = [(4000, 1000), (12_000, 2050), (20_000, 2050), (80_000, 2050)];
        let found = cut_prompts(&thread(&turns)).unwrap();
        assert_eq!((found.requests, found.tokens), (2, 2050));
    }

    #[test]
    fn counts_that_grow_with_the_prompt_are_sound_and_so_are_those_without_what_was_cached() {
        let grows = [(4000, 1000), (12_000, 3000), (20_000, 5000)];
        assert_eq!(cut_prompts(&thread(&grows)), None);
        let without_cached = [(4000, 1000), (12_000, 2000), (20_000, 2600)];
        assert_eq!(cut_prompts(&thread(&without_cached)), None);
        let little = [(4000, 1000), (4200, 1000)];
        assert_eq!(cut_prompts(&thread(&little)), None, "too little to tell");
    }
}
