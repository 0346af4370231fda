//! A TOML file that can say where each of its fields stands, so that an error found after parsing
//! points to its line just as one found by the parser does.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::TaskError;
use super::error::Position;
use super::folder::Folder;

/// A parsed file with its text.
pub(super) struct Document {
    file: String,
    text: String,
}

impl Document {
    /// Reads a TOML file that must be there, and checks the format name in its `schema` field.
    pub(super) fn read<T: DeserializeOwned>(
        folder: &Folder,
        path: &str,
        schema: &str,
    ) -> Result<(T, Self), TaskError> {
        let document = Self {
            file: folder.show(path),
            text: folder.text(path)?,
        };
        document.check_schema(schema)?;
        match toml::from_str(&document.text) {
            Ok(value) => Ok((value, document)),
            Err(e) => Err(document.syntax_error(&e)),
        }
    }

    /// An error about one field, named like `checks[1].must_print`.
    pub(super) fn error(&self, field: impl Into<String>, problem: impl Into<String>) -> TaskError {
        let field = field.into();
        let tree = DeTable::parse(&self.text).ok();
        let span = tree.and_then(|tree| locate(tree.get_ref(), &field));
        TaskError::Invalid {
            file: self.file.clone(),
            position: span.map(|span| Position::of(&self.text, span.start)),
            field: Some(field),
            problem: problem.into(),
        }
    }

    /// The format's version is looked at before anything else: a file of another version has
    /// other fields, and complaints about those would mislead.
    fn check_schema(&self, expected: &str) -> Result<(), TaskError> {
        let tree = DeTable::parse(&self.text).map_err(|e| self.syntax_error(&e))?;
        match tree.get_ref().get("schema").map(|v| v.get_ref()) {
            Some(DeValue::String(found)) if found == expected => Ok(()),
            Some(DeValue::String(found)) => Err(self.error(
                "schema",
                format!("this file says `{found}`; this flashrig reads `{expected}`"),
            )),
            Some(_) => Err(self.error("schema", format!("must be the text `{expected}`"))),
            None => {
                let problem = format!("is missing; begin the file with `schema = \"{expected}\"`");
                Err(self.error("schema", problem))
            }
        }
    }

    fn syntax_error(&self, error: &toml::de::Error) -> TaskError {
        let tree = DeTable::parse(&self.text).ok();
        let field = error
            .span()
            .and_then(|span| tree.and_then(|tree| field_at(tree.get_ref(), &span)))
            .filter(|field| !field.is_empty());
        TaskError::Invalid {
            file: self.file.clone(),
            position: error
                .span()
                .map(|span| Position::of(&self.text, span.start)),
            field,
            problem: error.message().trim_end().replace('\n', "; "),
        }
    }
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
