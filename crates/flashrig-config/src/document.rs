//! A TOML file that people write. It can say where each of its fields is, so that an error found
//! after parsing points to its line just as one found by the parser does.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file_error::{FileError, Position};
use super::serde_message::{self, Message};

/// A TOML file with its text.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
}

impl Document {
    /// `file` names the text in errors.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
        }
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the file.
    ///
    /// # Errors
    /// The file is not TOML, or a field is unknown, missing or of the wrong type. Names file, line,
    /// column and field.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        toml::from_str(&self.text).map_err(|error| self.syntax_error(&error))
    }

    /// Parses the file after its `schema` field, which says the format and its version. A file of
    /// another version has other fields, and complaints about those would mislead.
    ///
    /// # Errors
    /// As [`Self::parse`]; or the file is of another format or version.
    pub fn parse_schema<T: DeserializeOwned>(&self, schema: &str) -> Result<T, FileError> {
        let tree = DeTable::parse(&self.text).map_err(|error| self.syntax_error(&error))?;
        let problem = match tree.get_ref().get("schema").map(Spanned::get_ref) {
            Some(DeValue::String(found)) if found == schema => return self.parse(),
            Some(DeValue::String(found)) => {
                format!("this file says `{found}`; this flashrig reads `{schema}`")
            }
            Some(_) => format!("must be the text `{schema}`"),
            None => {
                let to_do = format!("begin the file with `schema = \"{schema}\"`");
                return Err(self.missing("schema", &to_do));
            }
        };
        Err(self.error("schema", problem))
    }

    /// An error about one field, named like `checks[1].must_print`. A field that is not there is
    /// placed at the innermost table that would hold it.
    pub fn error(&self, field: impl Into<String>, problem: impl Into<String>) -> FileError {
        let field = field.into();
        FileError::Invalid {
            file: self.file.clone(),
            position: self.position(&field),
            field: Some(field),
            problem: problem.into(),
        }
    }

    /// The error of a field that must be there. It has the place of the innermost table that would
    /// hold the field, and none when that is the whole file.
    pub fn missing(&self, field: &str, to_do: &str) -> FileError {
        FileError::Invalid {
            file: self.file.clone(),
            position: self.position(field),
            field: None,
            problem: format!("field `{field}` is missing; {to_do}"),
        }
    }

    fn position(&self, field: &str) -> Option<Position> {
        let tree = DeTable::parse(&self.text).ok()?;
        let span = locate(tree.get_ref(), field)?;
        Some(Position::of(&self.text, span.start))
    }

    /// An error of the TOML parser, or of serde.
    pub fn syntax_error(&self, error: &toml::de::Error) -> FileError {
        let tree = DeTable::parse(&self.text).ok();
        let field = error
            .span()
            .and_then(|span| tree.and_then(|tree| field_at(tree.get_ref(), &span)))
            .filter(|field| !field.is_empty());
        let position = error
            .span()
            .filter(|_| !self.text.is_empty())
            .map(|span| Position::of(&self.text, span.start));
        let problem = match serde_message::read(error.message()) {
            Message::Missing(name) => {
                // A place at the very start is the whole file, but where a table begins there.
                let is_whole = |span: Range<usize>| span.start == 0 && !self.text.starts_with('[');
                let table = field.filter(|_| !error.span().is_some_and(is_whole));
                return self.missing(&below(table.as_deref(), &name), "add it");
            }
            Message::Unknown { problem, .. } | Message::Other(problem) => problem,
        };
        FileError::Invalid {
            file: self.file.clone(),
            position,
            field,
            problem,
        }
    }

    /// An error of serde about the table at `field`, which was read by itself.
    pub fn error_in(&self, field: &str, error: &toml::de::Error) -> FileError {
        let table = Some(field).filter(|field| !field.is_empty());
        match serde_message::read(error.message()) {
            Message::Missing(name) => self.missing(&below(table, &name), "add it"),
            Message::Unknown { name, problem } => self.error(below(table, &name), problem),
            Message::Other(problem) => self.error(field, problem),
        }
    }
}

fn below(table: Option<&str>, name: &str) -> String {
    table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"))
}

/// The place of a field; of the innermost table that holds it when it is not there itself.
fn locate(table: &DeTable<'_>, field: &str) -> Option<Range<usize>> {
    let mut found = None;
    let mut table = Some(table);
    for part in field.split('.') {
        let (key, index) = match part.split_once('[') {
            Some((key, rest)) => (key, rest.trim_end_matches(']').parse::<usize>().ok()),
            None => (part, None),
        };
        let Some(mut value) = table.and_then(|t| t.get(key)) else {
            return found;
        };
        if let (Some(index), DeValue::Array(items)) = (index, value.get_ref()) {
            let Some(item) = items.get(index) else {
                return Some(value.span());
            };
            value = item;
        }
        found = Some(value.span());
        table = match value.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    found
}

/// The name of the field whose key or value begins where `span` does, or holds it most closely.
fn field_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    for (key, value) in table {
        if key.span().start == span.start {
            return Some(key.get_ref().to_string());
        }
        if let Some(rest) = value_at(value, span) {
            return Some(format!("{}{rest}", key.get_ref()));
        }
    }
    None
}

fn value_at(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    match value.get_ref() {
        DeValue::Table(inner) => {
            if let Some(rest) = field_at(inner, span) {
                return Some(format!(".{rest}"));
            }
        }
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(rest) = value_at(item, span) {
                    return Some(format!("[{index}]{rest}"));
                }
            }
        }
        _ => {}
    }
    let here = value.span();
    (here.start <= span.start && span.end <= here.end && !here.is_empty()).then(String::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "read by serde")]
        schema: String,
        #[expect(dead_code, reason = "read by serde")]
        limits: std::collections::BTreeMap<String, u64>,
        #[serde(default)]
        #[expect(dead_code, reason = "read by serde")]
        parts: Vec<Part>,
    }

    #[derive(Debug, Deserialize)]
    struct Part {
        #[expect(dead_code, reason = "read by serde")]
        name: String,
    }

    fn error(text: &str) -> String {
        let document = Document::new("x.toml", text);
        document
            .parse_schema::<File>("s/1")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_error_has_file_line_column_and_field_as_far_as_they_are_known() {
        for (text, wanted) in [
            (
                "schema = \"s/1\"\nlimit = 1",
                "x.toml:2:1: limit: unknown field \"limit\"; known: schema, limits, parts; did you mean \
                 \"limits\"?",
            ),
            (
                "schema = \"s/1\"\n[limits]\na = \"x\"",
                "x.toml:3:5: limits.a: must be a whole number of 0 or more, not the text \"x\"",
            ),
            (
                "schema = \"s/2\"",
                "x.toml:1:10: schema: this file says `s/2`; this flashrig reads `s/1`",
            ),
            (
                "a = 1",
                "x.toml: field `schema` is missing; begin the file with `schema = \"s/1\"`",
            ),
            (
                "schema = \"s/1\"",
                "x.toml: field `limits` is missing; add it",
            ),
            (
                "schema = \"s/1\"\n[limits]\n[[parts]]",
                "x.toml:3:1: field `parts[0].name` is missing; add it",
            ),
        ] {
            assert_eq!(error(text), wanted);
        }
        assert!(error("a = = 1").starts_with("x.toml:1:5: "));
    }

    #[test]
    fn a_field_is_placed_and_a_missing_one_where_it_would_be() {
        let document = Document::new("x.toml", "[[a]]\nb = 1\n[[a]]\nb = 2\n");
        let place = |field: &str| document.error(field, "p").to_string();
        assert_eq!(place("a[1].b"), "x.toml:4:5: a[1].b: p");
        assert_eq!(place("a[1].c"), "x.toml:3:1: a[1].c: p");
        assert_eq!(place("z"), "x.toml: z: p");
    }
}
