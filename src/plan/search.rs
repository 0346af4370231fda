//! The search for the largest number of sessions that passes: galloping, then bisecting. Pure.
//!
//! It assumes that what fits for many fits for fewer, as it mostly does, and checks that once: at
//! the first size that fails, the next one of the gallop is tried too. Should that pass, the search
//! goes on from there and the contradiction is told. After a refusal or a stall nothing larger is
//! tried: servers seldom recover from that in time to say anything about a larger size.

use std::collections::BTreeMap;

/// What a size came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It passes, with a warning or without.
    Passes,
    /// It does not.
    Fails,
    /// The server refused or stalled, or it could not be measured: nothing larger is tried.
    Blocked,
}

/// A search over sizes.
#[derive(Clone, Debug)]
pub struct Search {
    sizes: Vec<u32>,
    found: BTreeMap<usize, Found>,
}

impl Search {
    /// Over these sizes, ascending.
    pub fn new(sizes: Vec<u32>) -> Self {
        Self {
            sizes,
            found: BTreeMap::new(),
        }
    }

    /// Tells what a size came to; sizes that are none of the search's are left aside.
    pub fn report(&mut self, size: u32, found: Found) {
        if let Ok(index) = self.sizes.binary_search(&size) {
            self.found.insert(index, found);
        }
    }

    /// The size to be tried next; `None` when the search is over.
    pub fn next(&self) -> Option<u32> {
        self.next_index().map(|index| self.sizes[index])
    }

    /// The largest size that passed.
    pub fn largest(&self) -> Option<u32> {
        self.largest_index().map(|index| self.sizes[index])
    }

    /// Whether a smaller size failed where a larger one passed.
    pub fn non_monotonic(&self) -> bool {
        self.largest_index().is_some_and(|largest| {
            self.found
                .range(..largest)
                .any(|(_, found)| *found != Found::Passes)
        })
    }

    fn largest_index(&self) -> Option<usize> {
        self.found
            .iter()
            .rev()
            .find(|(_, found)| **found == Found::Passes)
            .map(|(index, _)| *index)
    }

    fn next_index(&self) -> Option<usize> {
        let low = self.largest_index();
        let above = low.map_or(0, |index| index + 1);
        let mut failed = self.found.range(above..);
        let Some((&high, &first)) = failed.next() else {
            // Nothing failed above: on with the gallop, over the last size at the latest.
            return (above < self.sizes.len()).then(|| stride(low).min(self.sizes.len() - 1));
        };
        let beyond = stride(Some(high)).min(self.sizes.len() - 1);
        if first == Found::Fails && beyond > high && failed.next().is_none() {
            // What fails further up was tried before: the gallop is over.
            return Some(beyond);
        }
        (above < high).then(|| above.midpoint(high))
    }
}

/// From index to index so that sizes from 1 go 1, 2, 4, 8, …
fn stride(from: Option<usize>) -> usize {
    from.map_or(0, |index| 2 * index + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs a search to its end; the sizes in the order in which they were tried.
    fn run(search: &mut Search, oracle: impl Fn(u32) -> Found) -> Vec<u32> {
        let mut tried = Vec::new();
        while let Some(size) = search.next() {
            assert!(!tried.contains(&size), "{size} came twice: {tried:?}");
            tried.push(size);
            search.report(size, oracle(size));
        }
        tried
    }

    fn up_to(limit: u32) -> impl Fn(u32) -> Found {
        move |n| {
            if n <= limit {
                Found::Passes
            } else {
                Found::Fails
            }
        }
    }

    #[test]
    fn it_gallops_looks_one_step_beyond_and_bisects() {
        let mut search = Search::new((1..=64).collect());
        let tried = run(&mut search, up_to(5));
        assert_eq!(tried, [1, 2, 4, 8, 16, 6, 5]);
        assert_eq!(search.largest(), Some(5));
        assert!(!search.non_monotonic());
    }

    #[test]
    fn after_a_refusal_nothing_larger_is_tried() {
        let mut search = Search::new((1..=64).collect());
        let tried = run(&mut search, |n| match n {
            0..=2 => Found::Passes,
            _ => Found::Blocked,
        });
        assert_eq!(tried, [1, 2, 4, 3]);
        assert_eq!(search.largest(), Some(2));
    }

    #[test]
    fn a_larger_size_that_passes_is_taken_and_the_contradiction_told() {
        let mut search = Search::new((1..=64).collect());
        let tried = run(&mut search, |n| match n {
            4 => Found::Fails,
            0..=9 => Found::Passes,
            _ => Found::Fails,
        });
        assert_eq!(&tried[..4], [1, 2, 4, 8]);
        assert_eq!(search.largest(), Some(9));
        assert!(search.non_monotonic());
    }

    #[test]
    fn when_not_even_the_smallest_passes_there_is_no_answer() {
        let mut search = Search::new(vec![1, 2, 4]);
        run(&mut search, |_| Found::Fails);
        assert_eq!(search.largest(), None);
    }

    #[test]
    fn what_a_resumed_run_knows_already_is_not_tried_again() {
        let mut search = Search::new((1..=64).collect());
        search.report(1, Found::Passes);
        search.report(2, Found::Passes);
        assert_eq!(search.next(), Some(4));
    }

    proptest! {
        #[test]
        fn the_boundary_of_a_monotone_server_is_found_in_few_measurements(
            most in 1u32..2000,
            limit in 0u32..2000,
        ) {
            let mut search = Search::new((1..=most).collect());
            let tried = run(&mut search, up_to(limit));
            prop_assert_eq!(search.largest(), Some(limit.min(most)).filter(|n| *n > 0));
            prop_assert!(!search.non_monotonic());
            let allowed = 2 * most.ilog2() + 3;
            prop_assert!(tried.len() <= allowed as usize, "{:?}", tried);
        }

        #[test]
        fn whatever_the_server_does_the_answer_passed_and_contradictions_are_told(
            passes in proptest::collection::vec(0u8..3, 1..80),
        ) {
            let most = u32::try_from(passes.len()).unwrap();
            let of = |n: u32| match passes[n as usize - 1] {
                0 => Found::Fails,
                1 => Found::Passes,
                _ => Found::Blocked,
            };
            let mut search = Search::new((1..=most).collect());
            let tried = run(&mut search, of);
            let largest = tried.iter().copied().filter(|n| of(*n) == Found::Passes).max();
            prop_assert_eq!(search.largest(), largest);
            let contradicted = largest.is_some_and(|l| {
                tried.iter().any(|n| *n < l && of(*n) != Found::Passes)
            });
            prop_assert_eq!(search.non_monotonic(), contradicted);
        }
    }
}
