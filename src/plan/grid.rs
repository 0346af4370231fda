//! The grid of `fit`: which combinations are measured, and in which order. Pure.
//!
//! Rounds are outermost, so that a run that is cut short has whole rounds, and so that a server
//! that grows slower over the hours does so for all sizes alike. Within a round everything of one
//! context length is measured together: slowdowns are ratios within a context, and the less time
//! lies between the two, the less else can have changed. Contexts and sizes come in an order that
//! the seed shuffles anew for each round, so that no size always follows the same other one. Only in the
//! first round the lone session comes first: everything else is compared with it, so that
//! a run stopped early can be judged, and a context at which not even one session is
//! served costs one measurement.

use std::collections::BTreeSet;

/// One combination in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// From 1.
    pub round: u32,
    /// Context length in tokens.
    pub context_tokens: u64,
    /// Number of sessions.
    pub sessions: u32,
}

/// The sizes that are measured: those asked for, and one session alone, which all others are
/// compared with. Ascending, each once.
pub fn sizes(asked: &[u32]) -> Vec<u32> {
    let all: BTreeSet<u32> = asked.iter().copied().chain([1]).collect();
    all.into_iter().collect()
}

/// All steps in their order. `sessions` are the sizes of [`sizes`].
pub fn steps(contexts: &[u64], sessions: &[u32], rounds: u32, seed: u64) -> Vec<Step> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        let mut random = Random::new(seed ^ (u64::from(round) << 32));
        let mut contexts = contexts.to_vec();
        random.shuffle(&mut contexts);
        for context_tokens in contexts {
            let mut sizes = sessions.to_vec();
            random.shuffle(&mut sizes);
            if round == 1 {
                // A stable sort: the others keep their shuffled order.
                sizes.sort_by_key(|n| *n != 1);
            }
            all.extend(sizes.into_iter().map(|sessions| Step {
                round,
                context_tokens,
                sessions,
            }));
        }
    }
    all
}

/// One size in every round.
pub fn size_steps(context_tokens: u64, sessions: u32, rounds: u32) -> Vec<Step> {
    (1..=rounds)
        .map(|round| Step {
            round,
            context_tokens,
            sessions,
        })
        .collect()
}

/// A small generator (`SplitMix64`) for reproducible orders; nothing secret comes of it.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fisher and Yates. The bias of the remainder is far below what an order could show.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = usize::try_from(self.next() % (end as u64 + 1)).unwrap_or(0);
            items.swap(end, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXTS: [u64; 3] = [32_768, 131_072, 262_144];
    const SESSIONS: [u32; 4] = [1, 2, 3, 4];

    #[test]
    fn every_combination_comes_once_in_every_round_and_rounds_are_outermost() {
        let all = steps(&CONTEXTS, &SESSIONS, 3, 7);
        assert_eq!(all.len(), 3 * 3 * 4);
        for (index, round) in all.chunks(12).enumerate() {
            assert!(round.iter().all(|s| s.round as usize == index + 1));
            let distinct: BTreeSet<_> = round.iter().collect();
            assert_eq!(distinct.len(), 12);
        }
    }

    #[test]
    fn sizes_of_one_context_are_measured_together() {
        for round in steps(&CONTEXTS, &SESSIONS, 5, 3).chunks(12) {
            for group in round.chunks(4) {
                assert!(
                    group
                        .iter()
                        .all(|s| s.context_tokens == group[0].context_tokens)
                );
            }
        }
    }

    #[test]
    fn the_first_round_begins_each_context_with_the_lone_session_and_later_ones_need_not() {
        let all = steps(&CONTEXTS, &SESSIONS, 20, 1);
        assert!(all[..12].chunks(4).all(|g| g[0].sessions == 1));
        assert!(all[12..].chunks(4).any(|g| g[0].sessions != 1));
    }

    #[test]
    fn the_seed_and_nothing_else_decides_the_order() {
        let of = |seed| steps(&CONTEXTS, &SESSIONS, 4, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn one_session_alone_is_always_among_the_sizes() {
        assert_eq!(sizes(&[4, 2, 2]), [1, 2, 4]);
    }
}
