//! Whether the system killed a process for lack of memory. The exit status alone does not show it:
//! any sender of SIGKILL looks the same.

use super::system;

/// Kills for lack of memory so far. What the system does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomKills {
    /// In the control group that flashrig and what it starts belong to.
    pub in_group: Option<u64>,
    /// On the whole machine.
    pub on_machine: Option<u64>,
}

impl OomKills {
    /// Reads the counters.
    pub fn now() -> Self {
        system::oom_kills()
    }

    /// Whether a process was killed for lack of memory between `earlier` and these; `None` when the
    /// system does not count.
    pub fn since(self, earlier: Self) -> Option<bool> {
        let rose = |now: Option<u64>, then: Option<u64>| Some(now? > then?);
        match (
            rose(self.in_group, earlier.in_group),
            rose(self.on_machine, earlier.on_machine),
        ) {
            (None, None) => None,
            (group, machine) => Some(group == Some(true) || machine == Some(true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_rose_counts_and_a_missing_counter_is_unknown() {
        let kills = |in_group, on_machine| OomKills {
            in_group,
            on_machine,
        };
        assert_eq!(kills(None, None).since(kills(None, None)), None);
        assert_eq!(kills(Some(1), None).since(kills(None, None)), None);
        assert_eq!(
            kills(Some(1), Some(4)).since(kills(Some(1), Some(4))),
            Some(false)
        );
        assert_eq!(
            kills(Some(1), Some(5)).since(kills(Some(1), Some(4))),
            Some(true)
        );
        assert_eq!(kills(Some(2), None).since(kills(Some(1), None)), Some(true));
    }
}
