//! What can be set of a managed server.

use super::raw_start::{RawSettingSource, RawVariable, Value};
use flashrig_config::{Template, unknown};

/// Placeholders that are no variables: the address, and folders.
pub const BUILT_IN: [&str; 5] = ["host", "port", "installed", "cache", "project"];
/// Those that stand for folders, and may be named anywhere any number of times.
pub const FOLDERS: [&str; 3] = ["installed", "cache", "project"];

/// Something that can be set.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name: `--set NAME=VALUE`, and `{name}` in the profile.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// Its value; `None` when it has none, and what names it is left out.
    pub value: Option<Value>,
    /// Whether that is another than its profile's default.
    pub is_set: bool,
    /// Values that a sweep over it tries.
    pub values: Vec<Value>,
    /// What kind of file it is.
    pub file: FileKind,
    /// Where the server tells what it has.
    pub reported_in: Option<SettingSource>,
    /// Whether the server may round it up.
    pub rounds_up: bool,
    /// What its values are like.
    like: Option<Value>,
}

/// Whether a variable is a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// It is none.
    No,
    /// It must exist, and is hashed.
    MustExist,
    /// It is hashed if it exists.
    OrName,
}

/// Where a server tells a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// In a field of an answer.
    Field {
        /// Path, below the base address.
        path: String,
        /// JSON pointer.
        field: String,
    },
    /// In a metric.
    Metric(String),
}

impl Variable {
    /// Validates one.
    ///
    /// # Errors
    /// The field below `variables.NAME`, and what is wrong with it.
    pub(super) fn from_raw(name: &str, raw: RawVariable) -> Result<Self, (&'static str, String)> {
        if BUILT_IN.contains(&name) {
            return Err((
                "",
                format!(
                    "{name:?} is a placeholder of flashrig's own ({}); name it otherwise",
                    BUILT_IN.map(|n| format!("{{{n}}}")).join(" ")
                ),
            ));
        }
        if Template::parse(&format!("{{{name}}}")).only_name() != Some(name) || name.contains('.') {
            return Err((
                "",
                "a name has lower-case letters, digits and underscores, and begins with a letter"
                    .to_owned(),
            ));
        }
        let file = match (raw.file, raw.file_or_name) {
            (true, true) => {
                return Err((".file", "stands beside `file_or_name`; give one".to_owned()));
            }
            (true, false) => FileKind::MustExist,
            (false, true) => FileKind::OrName,
            (false, false) => FileKind::No,
        };
        let like = raw.default.clone().or_else(|| raw.values.first().cloned());
        let mut variable = Self {
            name: name.to_owned(),
            about: raw.about,
            value: None,
            is_set: false,
            values: Vec::new(),
            file,
            reported_in: raw.reported_in.map(reported_in).transpose()?,
            rounds_up: raw.rounds_up,
            like,
        };
        if let Some(Value::Text(text)) = &raw.default
            && let Some(name) = Template::parse(text)
                .names()
                .find(|name| !FOLDERS.contains(name))
        {
            return Err((".default", unknown("placeholder", name, FOLDERS)));
        }
        if let Some(value) = raw.default {
            variable.value = Some(variable.fitting(value).map_err(|e| (".default", e))?);
        }
        for value in raw.values {
            let value = variable.fitting(value).map_err(|e| (".values", e))?;
            if variable.values.contains(&value) {
                return Err((".values", format!("holds {value} twice")));
            }
            variable.values.push(value);
        }
        Ok(variable)
    }

    /// Gives it a value, which is handed on as it was typed.
    ///
    /// # Errors
    /// The value is not of its kind.
    pub(super) fn set(&mut self, value: Value, typed: &str) -> Result<(), String> {
        self.value = Some(match self.fitting(value)? {
            switch @ Value::Switch(_) => switch,
            Value::Text(_) | Value::Whole(_) | Value::Number(_) => Value::Text(typed.to_owned()),
        });
        self.is_set = true;
        Ok(())
    }

    /// The value as one of this variable's kind, by its default or its first value.
    fn fitting(&self, value: Value) -> Result<Value, String> {
        let (kind, like) = match (&self.like, &value) {
            (None, _) => return Ok(value),
            (Some(Value::Text(_)), _) => return Ok(Value::Text(value.to_string())),
            (Some(Value::Whole(_)), Value::Whole(_))
            | (Some(Value::Number(_)), Value::Number(_) | Value::Whole(_))
            | (Some(Value::Switch(_)), Value::Switch(_)) => return Ok(value),
            (Some(like @ Value::Whole(_)), _) => ("a whole number", like),
            (Some(like @ Value::Number(_)), _) => ("a number", like),
            (Some(like @ Value::Switch(_)), _) => ("true or false", like),
        };
        Err(format!("is {value}, but must be {kind}, like {like}"))
    }
}

fn reported_in(raw: RawSettingSource) -> Result<SettingSource, (&'static str, String)> {
    let wrong = |message: &str| Err((".reported_in", message.to_owned()));
    match (raw.path, raw.field, raw.metric) {
        (Some(path), Some(_), None) if !path.starts_with('/') => {
            wrong(&format!("path is {path:?}, but a path begins with /"))
        }
        (Some(_), Some(field), None) if !field.starts_with('/') => wrong(&format!(
            "field is {field:?}, but a JSON pointer begins with /, like /total_slots"
        )),
        (Some(path), Some(field), None) => Ok(SettingSource::Field { path, field }),
        (None, None, Some(metric)) => Ok(SettingSource::Metric(metric)),
        _ => wrong("needs `path` and `field`, or `metric`"),
    }
}
