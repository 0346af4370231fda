//! Regular expressions in files that people write.

use regex::Regex;
use serde::Deserialize;

/// A regular expression that was compiled when its file was read.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Expression(pub Regex);

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Regex::new(&text).map(Self).map_err(|error| {
            let message = error.to_string();
            let why = message.lines().last().unwrap_or_default().trim();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            format!("{text:?} is not a regular expression: {why}")
        })
    }
}
