//! The prefix cache: which leading blocks of a prompt need no prefill.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Where a block stands in the order of eviction: the least recently used goes first, and of
/// blocks used together the deepest, so that what stays is always a usable prefix.
type Rank = (u64, Reverse<u32>);

/// Block hashes in order of use.
#[derive(Debug)]
pub struct PrefixCache {
    capacity_blocks: usize,
    ticks: u64,
    ranks: HashMap<u64, Rank>,
    order: BTreeSet<(Rank, u64)>,
}

impl PrefixCache {
    /// A cache of so many blocks; zero caches nothing.
    pub fn new(capacity_blocks: usize) -> Self {
        Self {
            capacity_blocks,
            ticks: 0,
            ranks: HashMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// How many leading blocks of `chain` are cached; marks them as used.
    pub fn hit(&mut self, chain: &[u64]) -> usize {
        let hits = chain
            .iter()
            .take_while(|hash| self.ranks.contains_key(hash))
            .count();
        self.touch(&chain[..hits]);
        hits
    }

    /// Caches all blocks of `chain`, evicting what was used longest ago.
    pub fn insert(&mut self, chain: &[u64]) {
        self.touch(chain);
        while self.ranks.len() > self.capacity_blocks {
            let Some((_, hash)) = self.order.pop_first() else {
                break;
            };
            self.ranks.remove(&hash);
        }
    }

    fn touch(&mut self, chain: &[u64]) {
        self.ticks += 1;
        for (depth, &hash) in (0u32..).zip(chain) {
            let rank = (self.ticks, Reverse(depth));
            if let Some(old) = self.ranks.insert(hash, rank) {
                self.order.remove(&(old, hash));
            }
            self.order.insert((rank, hash));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_forgets_what_was_used_longest_ago() {
        let mut cache = PrefixCache::new(4);
        cache.insert(&[1, 2]);
        cache.insert(&[3, 4]);
        assert_eq!(cache.hit(&[1, 2]), 2);
        cache.insert(&[5, 6]);
        assert_eq!(cache.hit(&[3, 4]), 0);
        assert_eq!(cache.hit(&[1, 2]), 2);
        assert_eq!(cache.hit(&[5, 6]), 2);
    }

    #[test]
    fn of_blocks_used_together_the_deepest_go_first() {
        let mut cache = PrefixCache::new(3);
        cache.insert(&[1, 2, 3, 4, 5]);
        assert_eq!(cache.hit(&[1, 2, 3, 4, 5]), 3);
    }

    #[test]
    fn a_cache_of_no_blocks_never_hits() {
        let mut cache = PrefixCache::new(0);
        cache.insert(&[1]);
        assert_eq!(cache.hit(&[1]), 0);
    }
}
