//! Built-in profiles of simulated servers, with values replaced.

use flashrig_harness::HARNESS;
use toml::{Table, Value};

/// What a profile of a simulated server says.
pub struct Simulated {
    /// The model that it serves.
    pub model: String,
    /// Tokens of its context.
    pub context: u64,
    /// Its `[sim]` table.
    pub table: Table,
}

/// A built-in profile. Changes are written `key=value`; keys stand in the `[sim]` table, dots lead
/// into tables below it; `context` is that of the server.
pub fn simulated(name: &str, changes: &[&str]) -> Simulated {
    let file = HARNESS.get_file(format!("servers/{name}.toml")).unwrap();
    let mut whole: Table = file.contents_utf8().unwrap().parse().unwrap();
    for change in changes {
        let (key, text) = change.split_once('=').unwrap();
        let value = match format!("v = {text}").parse::<Table>() {
            Ok(mut parsed) => parsed.remove("v").unwrap(),
            Err(_) => Value::String(text.to_owned()),
        };
        let mut table = match key {
            "context" => &mut whole,
            _ => whole["sim"].as_table_mut().unwrap(),
        };
        let mut path = key.split('.').peekable();
        while let Some(part) = path.next() {
            if path.peek().is_none() {
                table.insert(part.to_owned(), value);
                break;
            }
            let below = table.entry(part).or_insert_with(|| Table::new().into());
            table = below.as_table_mut().unwrap();
        }
    }
    Simulated {
        model: whole["model"].as_str().unwrap().to_owned(),
        context: whole["context"].as_integer().unwrap().try_into().unwrap(),
        table: whole["sim"].as_table().unwrap().clone(),
    }
}
