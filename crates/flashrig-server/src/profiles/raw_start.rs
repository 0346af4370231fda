//! What a profile says about starting a server, as people write it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use flashrig_config::Expression;

/// How a server is started.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawStart {
    /// Name looked for on PATH and then in the folder of a server that flashrig installed, or a
    /// path; relative paths count from the project's folder.
    pub program: String,
    /// The server that `flashrig servers install` installs where the program is not on PATH, whose
    /// folder is `{installed}` [default: the name of the profile].
    #[serde(default)]
    pub install: Option<String>,
    /// Arguments, one by one or in groups, with placeholders. A group (a flag and its value) is
    /// left out as a whole when a variable in it has no value.
    #[serde(default)]
    #[schemars(with = "Vec<StringOrGroup>")]
    pub args: Vec<RawGroup>,
    /// Environment, with placeholders; here alone `{env.NAME}` stands for a variable of the
    /// operator's environment, whose value is never stored.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of variables of the operator's environment that are passed on, where they are set,
    /// beside PATH, HOME, the locale and the places of caches and libraries.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Working directory, with placeholders [default: the project's folder].
    #[serde(default)]
    pub dir: Option<String>,
    /// Port to listen on [default: a free one].
    #[serde(default)]
    pub port: Option<u16>,
    /// Arguments that make the program list its flags, which those of `args` are held against
    /// [default: the subcommands that `args` begins with, and --help]; an empty list skips that.
    #[serde(default)]
    pub help: Option<Vec<String>>,
    /// Whether it is started again after it died in the middle of a run.
    #[serde(default = "yes")]
    pub restart: bool,
}

fn yes() -> bool {
    true
}

/// One argument, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawGroup(pub Vec<String>);

/// For the schema of [`RawGroup`].
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum StringOrGroup {
    /// One argument.
    One(String),
    /// Several that belong together.
    Group(Vec<String>),
}

impl<'de> Deserialize<'de> for RawGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawGroup;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an argument in quotes, or a list of arguments that belong together")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawGroup, E> {
                Ok(RawGroup(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawGroup, A::Error> {
                let mut group = Vec::new();
                while let Some(text) = list.next_element()? {
                    group.push(text);
                }
                Ok(RawGroup(group))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Something that can be set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawVariable {
    /// One line for people.
    pub about: String,
    /// Its value unless another is set; without one it has none, and what names it is left out. A
    /// text may hold `{installed}`, `{cache}` and `{project}`.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub default: Option<Value>,
    /// Values that a sweep over it tries.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
    /// Whether it is a file or folder, which must exist and is hashed.
    #[serde(default)]
    pub file: bool,
    /// Whether it is a name that the server knows, or a file or folder, which is hashed.
    #[serde(default)]
    pub file_or_name: bool,
    /// Where the server tells the value that it has; a `setting` of the log that is named as the
    /// variable is looked for besides.
    #[serde(default, alias = "told")]
    pub reported_in: Option<RawSettingSource>,
    /// Whether the server may round the value up, by no more than a quarter: what it tells is the
    /// value given all the same.
    #[serde(default)]
    pub rounds_up: bool,
}

/// Where the server tells a value: a field of an answer, or a metric.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSettingSource {
    /// Path of the answer, below the base address.
    #[serde(default)]
    pub path: Option<String>,
    /// JSON pointer into it.
    #[serde(default)]
    pub field: Option<String>,
    /// Name of a metric whose value it is.
    #[serde(default)]
    pub metric: Option<String>,
}

/// When the server is ready.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawReady {
    /// What is asked for, below the base address [default: /v1/models].
    #[serde(default)]
    pub path: Option<String>,
    /// The status that says so [default: any from 200 to 299].
    #[serde(default)]
    pub status: Option<u16>,
    /// How long it may take [default: 5m].
    #[serde(default)]
    pub limit: Option<String>,
}

/// How the program tells its version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawIdentity {
    /// Arguments.
    pub version: Vec<String>,
    /// Regular expression whose first group is the version [default: the first line].
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub pattern: Option<Expression>,
}

/// How the server is brought back to a known state: one of both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawReset {
    /// By ending it and starting it again.
    #[serde(default)]
    pub restart: bool,
    /// By these requests, one after the other.
    #[serde(default)]
    pub requests: Vec<RawRequest>,
}

/// A request that resets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRequest {
    /// GET, POST, PUT or DELETE.
    pub method: String,
    /// Path, below the base address.
    pub path: String,
    /// Body, as JSON.
    #[serde(default)]
    pub body: Option<serde_json::Value>,
}

/// How the server is ended: SIGTERM, and SIGKILL for what is left of it after a grace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawStop {
    /// How long it has to end by itself [default: 10s].
    pub grace: String,
}

/// A value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Switch(on) => on.fmt(f),
        }
    }
}

impl Value {
    /// The value of a TOML scalar; `None` when it is none.
    pub fn of(value: &toml::Value) -> Option<Self> {
        match value {
            toml::Value::String(text) => Some(Self::Text(text.clone())),
            toml::Value::Integer(number) => Some(Self::Whole(*number)),
            toml::Value::Float(number) if number.is_finite() => Some(Self::Number(*number)),
            toml::Value::Boolean(on) => Some(Self::Switch(*on)),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        Self::of(&value).ok_or_else(|| {
            de::Error::custom("a variable's value is a text, a number, true or false")
        })
    }
}
