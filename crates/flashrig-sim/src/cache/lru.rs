//! Block hashes in order of use: every operation takes constant time, since a prompt has
//! thousands of blocks and the scheduler has microseconds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const NONE: u32 = u32::MAX;

/// Keys are hashes already.
#[derive(Default)]
pub struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[derive(Debug)]
struct Node {
    key: u64,
    older: u32,
    newer: u32,
}

/// A set of hashes that knows which was used longest ago.
#[derive(Debug)]
pub struct Lru {
    places: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Self {
            places: HashMap::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }
}

impl Lru {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn contains(&self, key: u64) -> bool {
        self.places.contains_key(&key)
    }

    /// Makes `key` the newest, whether it was there or not.
    pub fn touch(&mut self, key: u64) {
        let place = match self.places.get(&key) {
            Some(&place) if place == self.newest => return,
            Some(&place) => {
                self.unlink(place);
                place
            }
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.nodes.push(Node {
                        key,
                        older: NONE,
                        newer: NONE,
                    });
                    u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
                });
                self.places.insert(key, place);
                place
            }
        };
        let older = self.newest;
        self.nodes[place as usize] = Node {
            key,
            older,
            newer: NONE,
        };
        match self.nodes.get_mut(older as usize) {
            Some(before) => before.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }

    pub fn remove(&mut self, key: u64) {
        if let Some(place) = self.places.remove(&key) {
            self.unlink(place);
            self.free.push(place);
        }
    }

    pub fn pop_oldest(&mut self) -> Option<u64> {
        let key = self.nodes.get(self.oldest as usize)?.key;
        self.remove(key);
        Some(key)
    }

    fn unlink(&mut self, place: u32) {
        let Node { older, newer, .. } = self.nodes[place as usize];
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(steps in proptest::collection::vec((0u8..3, 0u64..12), 0..200)) {
            let (mut lru, mut list) = (Lru::default(), Vec::<u64>::new());
            for (what, key) in steps {
                match what {
                    0 => {
                        lru.touch(key);
                        list.retain(|k| *k != key);
                        list.push(key);
                    }
                    1 => {
                        lru.remove(key);
                        list.retain(|k| *k != key);
                    }
                    _ => {
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(lru.pop_oldest(), first);
                    }
                }
                prop_assert_eq!(lru.len(), list.len());
                prop_assert_eq!(lru.contains(key), list.contains(&key));
            }
        }
    }
}
