//! A file with two mistakes: one that the parser finds, and one that only its user can find.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use flashrig_config::{Document, FileError, parse_duration};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    #[expect(dead_code, reason = "checked by `parse_schema`")]
    schema: String,
    time_limit: String,
}

fn read(text: &str) -> Result<std::time::Duration, FileError> {
    let document = Document::new("limits.toml", text);
    let limits: Limits = document.parse_schema("example.limits/1")?;
    parse_duration(&limits.time_limit)
        .map_err(|error| document.error("time_limit", error.to_string()))
}

fn main() {
    for text in [
        "schema = \"example.limits/1\"\ntime_limt = \"90s\"\n",
        "schema = \"example.limits/1\"\ntime_limit = \"90\"\n",
        "schema = \"example.limits/1\"\ntime_limit = \"90s\"\n",
    ] {
        match read(text) {
            Ok(limit) => println!("limit: {limit:?}"),
            Err(error) => println!("error: {error}"),
        }
    }
}
