//! Text with placeholders, as profiles of agents and servers have it: `{name}` stands for a value,
//! `{env.NAME}` for a variable of the operator's environment. Which names there are is the
//! profile's business.

use std::fmt;

/// Text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Named(String),
}

impl Template {
    /// Reads text. Braces around anything but a name are text, such as those of JSON.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            plain.push_str(&rest[..open]);
            let inner = &rest[open + 1..];
            match inner
                .find('}')
                .map(|end| &inner[..end])
                .filter(|n| is_name(n))
            {
                Some(name) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Named(name.to_owned()));
                    rest = &inner[name.len() + 1..];
                }
                None => {
                    plain.push('{');
                    rest = inner;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self(pieces)
    }

    /// The names of its placeholders, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Named(name) => Some(name.as_str()),
        })
    }

    /// The name, when it is one placeholder and nothing else.
    pub fn only_name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Named(name)] => Some(name),
            _ => None,
        }
    }

    /// The text with the values of its placeholders; every name has one.
    pub fn fill(&self, value: impl Fn(&str) -> String) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Named(name) => value(name),
            })
            .collect()
    }

    /// The text with the values of its placeholders.
    ///
    /// # Errors
    /// The first name that has no value.
    pub fn render(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, &str> {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => Ok(text.clone()),
                Piece::Named(name) => value(name).ok_or(name.as_str()),
            })
            .collect()
    }
}

/// Lower-case letters, digits and underscores, or `env.` and the name of a variable.
fn is_name(text: &str) -> bool {
    let plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let of_environment = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match text.strip_prefix("env.") {
        Some(name) => of_environment(name),
        None => plain(text),
    }
}

impl fmt::Display for Template {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Named(name) => write!(f, "{{{name}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_hold_no_name_are_text() {
        let template = Template::parse("{ \"a\": {\"b\": {context}} } {} {A}");
        assert_eq!(
            template.fill(|_| "8".to_owned()),
            "{ \"a\": {\"b\": 8} } {} {A}"
        );
    }

    #[test]
    fn names_are_found_and_the_braces_of_json_are_left_alone() {
        let text = r#"--x={a_1} {"b": {c}} {env.HF_TOKEN} {"#;
        let template = Template::parse(text);
        assert_eq!(
            template.names().collect::<Vec<_>>(),
            ["a_1", "c", "env.HF_TOKEN"]
        );
        assert_eq!(template.to_string(), text);
        let rendered = template.render(|name| Some(name.to_uppercase()));
        assert_eq!(rendered.unwrap(), r#"--x=A_1 {"b": C} ENV.HF_TOKEN {"#);
        assert_eq!(
            template.render(|name| (name != "c").then(String::new)),
            Err("c")
        );
    }
}
