//! Facts with a sentence: why a session failed, a round is not compared, a run stopped.
//!
//! Each is an enum with fields. It is stored as an object: a stable `code`, the fields, and `text`,
//! the sentence for people, which [`wording`](crate::wording) alone makes. Code branches on the
//! variant, never on the sentence. Records of older versions hold the bare sentence: it is read as
//! `other`. So is a code that this version does not know.

mod cell;
mod check;
mod codes;
mod counted;
mod load;
mod placed;
mod round;
mod server;
mod session;
mod stop;
mod sweep;
#[cfg(test)]
mod tests;
mod verdict;
mod watched;

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use cell::*;
pub use check::*;
pub use codes::{Code, codes, codes_table};
pub use counted::*;
pub use load::*;
pub use placed::*;
pub use round::*;
pub use server::*;
pub use session::*;
pub use stop::*;
pub use sweep::*;
pub use verdict::*;
pub use watched::*;

/// A fact that is stored with its code and its sentence. `Display` is the sentence.
pub trait Fact: Clone + PartialEq + Display + Serialize + DeserializeOwned {
    /// A sentence of an older or newer version.
    fn other(text: String) -> Self;

    /// The stable code, as it is stored.
    fn code(&self) -> String {
        let stored = serde_json::to_value(self).unwrap_or_default();
        stored["code"].as_str().unwrap_or("other").to_owned()
    }
}

/// Facts as one line: `a; b`.
pub fn joined<F: Display>(facts: &[F]) -> String {
    let texts: Vec<String> = facts.iter().map(F::to_string).collect();
    texts.join("; ")
}

/// The object to store: what derives give, with the sentence behind it.
fn with_text(bare: Value, text: String) -> Value {
    let mut object = match bare {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    object.insert("text".to_owned(), Value::String(text));
    Value::Object(object)
}

/// Reads what [`with_text`] made, or a bare sentence.
fn read<F: Fact>(
    stored: Value,
    bare: impl FnOnce(&Value) -> Result<F, serde_json::Error>,
) -> Result<F, serde_json::Error> {
    if let Value::String(text) = stored {
        return Ok(F::other(text));
    }
    bare(&stored).or_else(|error| match stored.get("text") {
        Some(Value::String(text)) => Ok(F::other(text.clone())),
        _ => Err(error),
    })
}

/// Adds the sentence to the schema of every variant.
fn text_in_schema(schema: &mut schemars::Schema) {
    let Some(Value::Array(variants)) = schema.get_mut("oneOf") else {
        return;
    };
    for variant in variants {
        let Some(variant) = variant.as_object_mut() else {
            continue;
        };
        let text = serde_json::json!({"description": "The sentence.", "type": "string"});
        if let Some(Value::Object(properties)) = variant.get_mut("properties") {
            properties.insert("text".to_owned(), text);
        }
        if let Some(Value::Array(required)) = variant.get_mut("required")
            && !required.contains(&"text".into())
        {
            required.push("text".into());
        }
    }
}

/// Stores a fact with its sentence. The enum derives serde's traits with `remote = "Self"`.
macro_rules! fact {
    ($($name:ident),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let bare = Self::serialize(self, serde_json::value::Serializer)
                    .map_err(serde::ser::Error::custom)?;
                let stored = $crate::facts::with_text(bare, self.to_string());
                serde::Serialize::serialize(&stored, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let stored = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                $crate::facts::read(stored, |bare| Self::deserialize(bare))
                    .map_err(serde::de::Error::custom)
            }
        }

        impl $crate::facts::Fact for $name {
            fn other(text: String) -> Self {
                Self::Other { text }
            }
        }
    )+};
}
use fact;
