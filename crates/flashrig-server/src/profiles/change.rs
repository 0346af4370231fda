//! `--set KEY=VALUE`: a value of a profile changed from the command line.

use std::str::FromStr;

use super::raw_start::Value;
use super::recipe::Recipe;

/// A change of one value. Keys of a managed server are its variables, and `port`. Those of a
/// simulated one are those of the `[sim]` table (`cache_ram`,
/// `faults.stall_after_requests`), and `model`, `context` and `title` beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As typed.
    name: String,
    key: Vec<String>,
    value: toml::Value,
    text: String,
}

/// A change that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--set {0:?} is not a change of a value; write it like cache_ram=4GB")]
pub struct ChangeError(String);

impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let wrong = || ChangeError(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let value = value.trim();
        let name = key.trim().to_owned();
        let key: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
        let is_name = |part: &String| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if value.is_empty() || !key.iter().all(is_name) {
            return Err(wrong());
        }
        // What is no TOML value is text: nobody types the quotes around 4GB.
        let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        Ok(Self {
            name,
            key: place(key),
            value,
            text: text.trim().to_owned(),
        })
    }
}

/// The whole path of a key.
fn place(key: Vec<String>) -> Vec<String> {
    match key[0].as_str() {
        "sim" | "model" | "context" | "title" => key,
        _ => std::iter::once("sim".to_owned()).chain(key).collect(),
    }
}

/// The name of a value that is changed more than once.
pub(super) fn twice(changes: &[Change]) -> Option<String> {
    let again = |(index, change): (usize, &Change)| {
        let earlier = changes[..index].iter().any(|other| other.key == change.key);
        earlier.then(|| change.name.clone())
    };
    changes.iter().enumerate().find_map(again)
}

impl Change {
    /// Changes the value in a profile, making the tables on the way to it.
    pub(super) fn apply(&self, profile: &mut toml::Table) {
        let Some((last, path)) = self.key.split_last() else {
            return;
        };
        let mut table = profile;
        for part in path {
            let entry = table
                .entry(part.clone())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if !entry.is_table() {
                *entry = toml::Value::Table(toml::Table::new());
            }
            let Some(inner) = entry.as_table_mut() else {
                return;
            };
            table = inner;
        }
        table.insert(last.clone(), self.value.clone());
    }
}

impl Change {
    /// What is changed, as typed.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the variable of a managed server.
    ///
    /// # Errors
    /// There is none of that name, or the value is not of its kind.
    pub(super) fn set(&self, recipe: &mut Recipe) -> Result<(), String> {
        let typed = self
            .text
            .split_once('=')
            .map_or("", |(_, typed)| typed.trim());
        // Dates and lists of TOML are text to a server.
        let value = Value::of(&self.value).unwrap_or_else(|| Value::Text(typed.to_owned()));
        recipe.set(&self.name, value, typed)
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--set {}", self.text)
    }
}

/// All of them in words.
pub(super) fn list(changes: &[Change]) -> String {
    let all: Vec<String> = changes.iter().map(Change::to_string).collect();
    all.join(" ")
}

/// The name of a changed profile.
pub(super) fn named(name: &str, changes: &[Change]) -> String {
    let texts: Vec<&str> = changes.iter().map(|c| c.text.as_str()).collect();
    format!("{name} with {}", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::{Kind, Library};
    use flashrig_sim::ByteSize;

    fn load(changes: &[&str]) -> Result<flashrig_sim::SimProfile, String> {
        let changes: Vec<Change> = changes.iter().map(|c| c.parse().unwrap()).collect();
        let profile = Library::new(None).load_with("flash-next", &changes);
        match profile.map_err(|e| e.to_string())?.kind {
            Kind::Simulated(profile) => Ok(profile),
            Kind::Attached { .. } | Kind::Managed(_) => Err("not simulated".into()),
        }
    }

    #[test]
    fn values_are_changed_with_and_without_quotes_in_and_beside_the_sim_table() {
        let profile = load(&[
            "cache_ram=4GB",
            "sim.kv_bits = 8",
            "context=4096",
            "faults.stall_after_requests=6",
        ])
        .unwrap();
        let table = profile.timing.table();
        assert_eq!(table.cache_ram, Some(ByteSize(4 << 30)));
        assert!(
            profile.name.starts_with("flash-next with cache_ram=4GB, "),
            "{}",
            profile.name
        );
        assert_eq!((table.kv_bits, profile.context), (8, 4096));
        assert_eq!(table.faults.stall_after_requests, Some(6));
    }

    #[test]
    fn a_value_that_is_given_twice_is_found_however_it_is_written() {
        let changes = |texts: &[&str]| -> Vec<Change> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let again = changes(&["kv_bits=4", "context=1", "sim.kv_bits=8"]);
        assert_eq!(twice(&again).as_deref(), Some("sim.kv_bits"));
        assert_eq!(twice(&again[..2]), None);
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_the_field_and_what_was_typed() {
        for (change, message) in [
            ("cache_rum=4GB", "did you mean \"cache_ram\"?"),
            ("cache_ram=much", "not a size of memory"),
            ("kv_bits=5", "sim.kv_bits: is 5, but it must be 4, 8 or 16"),
            ("max_concurrent=0", "sim.max_concurrent: "),
            ("decode=[]", "sim.decode: "),
        ] {
            let error = load(&[change]).unwrap_err();
            assert!(
                error.contains(message) && error.contains(&format!("--set {change}")),
                "{error}"
            );
        }
        for text in ["cache_ram", "=4", "a b=4", "cache_ram=", "a..b=1"] {
            assert!(text.parse::<Change>().is_err(), "{text:?} was read");
        }
    }
}
