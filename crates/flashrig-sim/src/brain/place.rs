//! Where a session stands, and how a tool-call id says so.

/// By what means a step is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The tool made for it.
    Tool,
    /// The shell.
    Shell,
    /// Not the step itself but a second reading of its file, before the step is tried again.
    Reread,
}

/// One tool call's place in its walkthrough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Tag of the walkthrough.
    pub script: u16,
    /// Index of the action.
    pub step: usize,
    /// Which try, from 1.
    pub attempt: u8,
    /// How.
    pub means: Means,
}

/// Begins the part of an id that is ours.
const MARK: &str = "fr";

impl Place {
    /// The id of a call; `turn` keeps it unique within a conversation.
    pub fn id(self, prefix: &str, turn: usize) -> String {
        let means = match self.means {
            Means::Tool => 'm',
            Means::Shell => 's',
            Means::Reread => 'r',
        };
        format!(
            "{prefix}{MARK}{:04x}s{:03}a{}{means}t{turn:03}",
            self.script, self.step, self.attempt
        )
    }

    /// Reads an id back; `None` when it is not one of ours.
    pub fn parse(id: &str) -> Option<Self> {
        let own = &id[id.rfind(MARK)? + MARK.len()..];
        let (script, rest) = own.split_at_checked(4)?;
        let (step, rest) = rest.strip_prefix('s')?.split_once('a')?;
        let (attempt, _turn) = rest.split_once('t')?;
        let (attempt, means) = attempt.split_at_checked(attempt.len().checked_sub(1)?)?;
        let means = match means {
            "m" => Means::Tool,
            "s" => Means::Shell,
            "r" => Means::Reread,
            _ => return None,
        };
        Some(Self {
            script: u16::from_str_radix(script, 16).ok()?,
            step: step.parse().ok()?,
            attempt: attempt.parse().ok()?,
            means,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_the_place_it_was_made_of() {
        for means in [Means::Tool, Means::Shell, Means::Reread] {
            let place = Place {
                script: 0xfa0f,
                step: 12,
                attempt: 3,
                means,
            };
            for prefix in ["toolu_", "call_", ""] {
                let id = place.id(prefix, 41);
                assert_eq!(Place::parse(&id), Some(place), "{id}");
                assert!(
                    id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                    "{id}"
                );
            }
        }
    }

    #[test]
    fn ids_of_others_are_no_places() {
        for id in [
            "",
            "fr",
            "toolu_01AbFrx",
            "call_fr12",
            "fr0000s",
            "fr0000s1a1",
            "fr0000s1a1xt1",
            "fré00s1a1mt1",
        ] {
            assert_eq!(Place::parse(id), None, "{id}");
        }
    }
}
