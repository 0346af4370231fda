//! A request body that is looked into once, however many want to know something of it.

use std::sync::OnceLock;

use bytes::Bytes;

use super::json::{Value, is_json};

/// A request body. It is checked and walked when somebody first asks, and never again.
pub(super) struct Document {
    text: Bytes,
    members: OnceLock<Option<Vec<(String, Value)>>>,
}

impl Document {
    pub(super) fn new(text: impl Into<Bytes>) -> Self {
        Self {
            text: text.into(),
            members: OnceLock::new(),
        }
    }

    /// The body as the client sent it.
    pub(super) fn text(&self) -> &Bytes {
        &self.text
    }

    /// The members of the object that it is; `None` when it is not JSON, or not an object.
    pub(super) fn members(&self) -> Option<&[(String, Value)]> {
        let walk = || {
            let root = Value::root(&self.text).filter(|_| is_json(&self.text))?;
            root.is_object(&self.text).then(|| root.members(&self.text))
        };
        self.members.get_or_init(walk).as_deref()
    }

    /// The member `name`. Of several, the last, as JSON readers commonly have it.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        let members = self.members()?;
        let found = members.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }

    /// The offset just inside the opening brace; `None` when it is not a JSON object.
    pub(super) fn inside(&self) -> Option<usize> {
        self.members()?;
        Value::root(&self.text).map(|root| root.inside())
    }
}
