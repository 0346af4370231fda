//! Reads a file that people write: an error says file, line, column, field and what to do.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_config::{Document, nearest};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    title: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = Document::new("mine.toml", "title = \"My agent\"\n");
    println!("{}", document.parse::<Agent>()?.title);
    if let Err(error) = Document::new("mine.toml", "titel = \"My agent\"\n").parse::<Agent>() {
        println!("error: {error}");
    }
    let known = ["claude", "opencode"];
    println!(
        "did you mean {}?",
        nearest("claud", known).unwrap_or("nothing")
    );
    Ok(())
}
