//! The prefix cache: which leading blocks of a prompt need no prefill, and where they lie.
//!
//! Either one cache for all requests, in RAM with a disk below it, or one prompt per slot.

mod lru;

use lru::Lru;

use super::profile::SimTable;

/// Leading blocks that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// In RAM, or in the slot.
    pub ram_blocks: u64,
    /// On disk.
    pub disk_blocks: u64,
}

/// The cache of a server.
#[derive(Debug)]
pub enum Cache {
    /// One for all.
    Shared(PrefixCache),
    /// Each slot has the last prompt and answer that it processed.
    PerSlot(Vec<Vec<u64>>),
}

impl Cache {
    /// The cache that the table describes.
    pub fn new(table: &SimTable) -> Self {
        if table.cache_per_slot {
            return Self::PerSlot(vec![Vec::new(); table.max_concurrent as usize]);
        }
        let block = u64::from(table.cache_block_tokens);
        let blocks = |bytes: u64| bytes / (kv_bytes(table) * block).max(1);
        let ram = match (table.cache_ram, table.cache_tokens) {
            (Some(bytes), _) => blocks(bytes.0),
            (None, tokens) => tokens.unwrap_or(0) / block,
        };
        let size = |blocks| usize::try_from(blocks).unwrap_or(usize::MAX);
        Self::Shared(PrefixCache::new(
            size(ram),
            size(blocks(table.cache_disk.0)),
        ))
    }

    /// The free slot in which a prompt is best read: the one with the longest common beginning.
    pub fn best_slot(&self, chain: &[u64], mut free: impl Iterator<Item = usize>) -> Option<usize> {
        match self {
            Self::Shared(_) => free.next(),
            // Of equals the first, so that the choice is reproducible.
            Self::PerSlot(slots) => free.max_by_key(|slot| {
                let common = slots.get(*slot).map_or(0, |held| common(held, chain));
                (common, std::cmp::Reverse(*slot))
            }),
        }
    }

    /// What of `chain` is cached for a request in `slot`; marks it as used.
    pub fn hit(&mut self, slot: usize, chain: &[u64]) -> Hit {
        match self {
            Self::Shared(cache) => cache.hit(chain),
            Self::PerSlot(slots) => Hit {
                ram_blocks: slots.get(slot).map_or(0, |held| common(held, chain)),
                disk_blocks: 0,
            },
        }
    }

    /// Caches all blocks of `chain`.
    pub fn insert(&mut self, slot: usize, chain: &[u64]) {
        match self {
            Self::Shared(cache) => cache.insert(chain),
            Self::PerSlot(slots) => {
                if let Some(held) = slots.get_mut(slot) {
                    held.clear();
                    held.extend_from_slice(chain);
                }
            }
        }
    }

    /// Blocks in RAM beyond those of running requests.
    pub fn ram_blocks(&self) -> u64 {
        match self {
            Self::Shared(cache) => cache.ram.len() as u64,
            Self::PerSlot(_) => 0,
        }
    }
}

/// Bytes of a token's keys and values at the table's bits.
pub fn kv_bytes(table: &SimTable) -> u64 {
    table.kv_bytes_per_token * u64::from(table.kv_bits) / 16
}

fn common(held: &[u64], chain: &[u64]) -> u64 {
    held.iter().zip(chain).take_while(|(a, b)| a == b).count() as u64
}

/// Block hashes in order of use, in RAM and on disk. The least recently used go first, and of
/// blocks used together the deepest, so that what stays is always a usable prefix.
#[derive(Debug)]
pub struct PrefixCache {
    ram_capacity: usize,
    disk_capacity: usize,
    ram: Lru,
    disk: Lru,
}

impl PrefixCache {
    /// A cache of this many blocks; zero caches nothing.
    pub fn new(ram_capacity: usize, disk_capacity: usize) -> Self {
        Self {
            ram_capacity,
            disk_capacity,
            ram: Lru::default(),
            disk: Lru::default(),
        }
    }

    fn hit(&mut self, chain: &[u64]) -> Hit {
        let mut hit = Hit::default();
        for hash in chain {
            if self.ram.contains(*hash) {
                hit.ram_blocks += 1;
            } else if self.disk.contains(*hash) {
                hit.disk_blocks += 1;
            } else {
                break;
            }
        }
        let blocks = usize::try_from(hit.ram_blocks + hit.disk_blocks).unwrap_or(chain.len());
        self.insert(&chain[..blocks]);
        hit
    }

    /// Makes the blocks the newest, evicting what was used longest ago: first to disk, then for
    /// good.
    fn insert(&mut self, chain: &[u64]) {
        for hash in chain.iter().rev() {
            self.ram.touch(*hash);
            if self.disk.len() > 0 {
                self.disk.remove(*hash);
            }
        }
        while self.ram.len() > self.ram_capacity {
            let Some(hash) = self.ram.pop_oldest() else {
                break;
            };
            if self.disk_capacity > 0 {
                self.disk.touch(hash);
            }
        }
        while self.disk.len() > self.disk_capacity {
            self.disk.pop_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cache: &mut PrefixCache, chain: &[u64]) -> (u64, u64) {
        let hit = cache.hit(chain);
        (hit.ram_blocks, hit.disk_blocks)
    }

    #[test]
    fn a_full_cache_forgets_what_was_used_longest_ago() {
        let mut cache = PrefixCache::new(4, 0);
        cache.insert(&[1, 2]);
        cache.insert(&[3, 4]);
        assert_eq!(found(&mut cache, &[1, 2]), (2, 0));
        cache.insert(&[5, 6]);
        assert_eq!(found(&mut cache, &[3, 4]), (0, 0));
        assert_eq!(found(&mut cache, &[1, 2]), (2, 0));
        assert_eq!(found(&mut cache, &[5, 6]), (2, 0));
    }

    #[test]
    fn of_blocks_used_together_the_deepest_go_first() {
        let mut cache = PrefixCache::new(3, 0);
        cache.insert(&[1, 2, 3, 4, 5]);
        assert_eq!(found(&mut cache, &[1, 2, 3, 4, 5]), (3, 0));
    }

    #[test]
    fn what_has_no_place_in_ram_is_found_on_disk_and_comes_back() {
        let mut cache = PrefixCache::new(2, 3);
        cache.insert(&[1, 2]);
        cache.insert(&[3, 4]);
        assert_eq!(found(&mut cache, &[1, 2, 9]), (0, 2));
        assert_eq!(found(&mut cache, &[1, 2]), (2, 0));
        assert_eq!(found(&mut cache, &[3, 4]), (0, 2));
        // Six blocks do not fit into five: the deepest of what was used longest ago is gone.
        cache.insert(&[5, 6]);
        cache.insert(&[3, 4]);
        assert_eq!(found(&mut cache, &[1, 2]), (0, 1));
    }

    #[test]
    fn a_cache_of_no_blocks_never_hits() {
        let mut cache = PrefixCache::new(0, 0);
        cache.insert(&[1]);
        assert_eq!(found(&mut cache, &[1]), (0, 0));
    }

    #[test]
    fn slots_with_a_cache_each_are_chosen_by_what_they_hold() {
        let mut cache = Cache::PerSlot(vec![Vec::new(); 3]);
        cache.insert(1, &[1, 2, 3]);
        cache.insert(2, &[1, 2, 9, 8]);
        assert_eq!(cache.best_slot(&[1, 2, 9], 0..3), Some(2));
        assert_eq!(cache.best_slot(&[1, 2, 3, 4], 0..3), Some(1));
        assert_eq!(cache.best_slot(&[7], 0..3), Some(0));
        assert_eq!(cache.best_slot(&[1, 2, 3], [0, 2].into_iter()), Some(2));
        assert_eq!(cache.hit(2, &[1, 2, 3]).ram_blocks, 2);
        assert_eq!(cache.best_slot(&[1], std::iter::empty()), None);
    }
}
