//! What was counted of a session's requests. Records of older versions hold each as a line such as
//! `HEAD / -> 404 (2)`, which is read as well.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that the server has no route for or that flashrig does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct UnknownRoute {
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// HTTP status; `null` when none came.
    pub status: Option<u16>,
    /// How many.
    pub requests: u64,
}

/// A required field that streams lack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct MissingField {
    /// The field, e.g. `message_start.message.usage`.
    pub field: String,
    /// Streams that lack it.
    pub streams: u64,
}

/// Answers that named another model than the one asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct OtherModel {
    /// The model asked for.
    pub asked: String,
    /// The model that the answers name.
    pub answered: String,
    /// How many answers.
    pub answers: u32,
}

/// A text and the number in brackets behind it.
fn parted(line: &str) -> Option<(&str, u64)> {
    let (text, count) = line.rsplit_once(" (")?;
    Some((text, count.strip_suffix(')')?.parse().ok()?))
}

impl UnknownRoute {
    fn from_line(line: &str) -> Option<Self> {
        let (text, requests) = parted(line)?;
        let (route, status) = text.rsplit_once(" -> ")?;
        let (method, path) = route.split_once(' ')?;
        Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            status: status.parse().ok(),
            requests,
        })
    }
}

impl MissingField {
    fn from_line(line: &str) -> Option<Self> {
        let (field, streams) = parted(line)?;
        let field = field.to_owned();
        Some(Self { field, streams })
    }
}

impl OtherModel {
    fn from_line(line: &str) -> Option<Self> {
        let (text, answers) = parted(line)?;
        let (asked, answered) = text.split_once(" -> ")?;
        Some(Self {
            asked: asked.to_owned(),
            answered: answered.to_owned(),
            answers: answers.try_into().ok()?,
        })
    }
}

/// Reads the object, or the line of an older version.
macro_rules! counted {
    ($($name:ident),+) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let stored = <serde_json::Value as Deserialize>::deserialize(deserializer)?;
                match stored.as_str() {
                    Some(line) => Self::from_line(line)
                        .ok_or_else(|| D::Error::custom(format!("no count in {line:?}"))),
                    None => Self::deserialize(stored).map_err(D::Error::custom),
                }
            }
        }
    )+};
}
counted!(UnknownRoute, MissingField, OtherModel);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(line: &str) -> T {
        serde_json::from_value(line.into()).unwrap()
    }

    #[test]
    fn the_lines_of_older_records_are_read() {
        for line in ["HEAD / -> 404 (2)", "GET /a b -> no answer (1)"] {
            assert_eq!(read::<UnknownRoute>(line).to_string(), line);
        }
        assert_eq!(read::<UnknownRoute>("HEAD / -> 404 (2)").status, Some(404));
        assert_eq!(read::<MissingField>("choices (2)").streams, 2);
        let other = read::<OtherModel>("big (v1) -> small (3)");
        assert_eq!((other.asked.as_str(), other.answers), ("big (v1)", 3));
    }

    #[test]
    fn an_object_is_stored_and_read_again() {
        let field = MissingField {
            field: "choices".into(),
            streams: 2,
        };
        let stored = serde_json::to_value(&field).unwrap();
        assert_eq!(
            stored,
            serde_json::json!({"field": "choices", "streams": 2})
        );
        assert_eq!(
            serde_json::from_value::<MissingField>(stored).unwrap(),
            field
        );
    }
}
