//! What opens a server's door, as people name it: variables and files, never values.

use std::path::PathBuf;

use flashrig_http::{CaError, Door, DoorError, Secret};

/// What opens a server's door: names of environment variables, and a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorSpec {
    /// Variable that holds the server's key.
    pub key_env: Option<String>,
    /// Header and the variable that holds its value.
    pub header_env: Vec<(String, String)>,
    /// Variable that holds `user:pass`.
    pub basic_env: Option<String>,
    /// PEM file of a CA, beside those that this machine trusts.
    pub ca: Option<PathBuf>,
}

/// What opens a server's door cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DoorSpecError {
    /// The variable is not set, or is empty.
    #[error("the environment variable {variable} for {what} is not set or is empty")]
    Missing {
        /// The variable.
        variable: String,
        /// What it is for.
        what: String,
    },
    /// What it holds cannot be sent.
    #[error("the environment variable {variable} for {what}: {source}")]
    Value {
        /// The variable.
        variable: String,
        /// What it is for.
        what: String,
        /// What is wrong with it.
        source: DoorError,
    },
    /// The CA file cannot be used.
    #[error("--ca: {0}")]
    Ca(#[from] CaError),
}

impl DoorSpec {
    /// This, and what a profile has where nothing else was given. Headers of both are sent.
    pub fn or(&self, profile: &Self) -> Self {
        let own = |name: &str| {
            let mut typed = self.header_env.iter();
            typed.any(|(typed, _)| typed.eq_ignore_ascii_case(name))
        };
        let further = profile.header_env.iter().filter(|(name, _)| !own(name));
        Self {
            key_env: self.key_env.as_ref().or(profile.key_env.as_ref()).cloned(),
            header_env: self.header_env.iter().chain(further).cloned().collect(),
            basic_env: self
                .basic_env
                .as_ref()
                .or(profile.basic_env.as_ref())
                .cloned(),
            ca: self.ca.as_ref().or(profile.ca.as_ref()).cloned(),
        }
    }

    /// Reads the variables and the file.
    ///
    /// # Errors
    /// A variable is not set, is empty, is not UTF-8 or holds what cannot be sent; or the file
    /// cannot be used.
    pub fn read(&self) -> Result<Door, DoorSpecError> {
        let key = self
            .key_env
            .as_deref()
            .map(|name| value(name, "the server's key"));
        let mut door = Door::from(key.transpose()?);
        for (header, variable) in &self.header_env {
            let what = format!("the header {header}");
            let value = value(variable, &what)?;
            door.header(header, value)
                .map_err(|source| DoorSpecError::Value {
                    variable: variable.clone(),
                    what,
                    source,
                })?;
        }
        if let Some(variable) = &self.basic_env {
            let what = "the server's user name and password";
            door.basic(value(variable, what)?)
                .map_err(|source| DoorSpecError::Value {
                    variable: variable.clone(),
                    what: what.to_owned(),
                    source,
                })?;
        }
        if let Some(file) = &self.ca {
            door.ca(file)?;
        }
        Ok(door)
    }
}

/// Reads `NAME=VARIABLE`, the header and the variable that holds its value.
///
/// # Errors
/// It is not one. What was given is not repeated: it may hold a secret.
pub fn parse_header_env(text: &str) -> Result<(String, String), String> {
    let is_variable = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match text.split_once('=') {
        Some((name, variable)) if !name.is_empty() && is_variable(variable) => {
            Ok((name.to_owned(), variable.to_owned()))
        }
        _ => Err(
            "write it as NAME=VARIABLE: the header's name, and the environment variable that holds \
             its value (not the value itself)"
                .to_owned(),
        ),
    }
}

fn value(variable: &str, what: &str) -> Result<Secret, DoorSpecError> {
    let value = std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty());
    value
        .map(Secret::new)
        .ok_or_else(|| DoorSpecError::Missing {
            variable: variable.to_owned(),
            what: what.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_goes_before_the_profile_and_headers_of_both_are_sent() {
        let spec = |key: Option<&str>, headers: &[(&str, &str)]| DoorSpec {
            key_env: key.map(str::to_owned),
            header_env: headers
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect(),
            ..DoorSpec::default()
        };
        let typed = spec(None, &[("X-A", "TYPED")]);
        let profile = spec(Some("KEY"), &[("x-a", "PROFILE"), ("X-B", "PROFILE")]);
        let both = spec(Some("KEY"), &[("X-A", "TYPED"), ("X-B", "PROFILE")]);
        assert_eq!(typed.or(&profile), both);
    }

    #[test]
    fn a_header_is_given_by_the_name_of_a_variable_and_a_value_is_not_repeated() {
        let parsed = parse_header_env("X-Token=MY_TOKEN").unwrap();
        assert_eq!(parsed, ("X-Token".to_owned(), "MY_TOKEN".to_owned()));
        for bad in ["hunter22", "X-Token=hunter-22!", "=hunter22", "X-Token="] {
            let error = parse_header_env(bad).unwrap_err();
            assert!(!error.contains("hunter"), "{error}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named_with_what_it_is_for() {
        let spec = DoorSpec {
            header_env: vec![("X-A".to_owned(), "FLASHRIG_NO_SUCH_VARIABLE".to_owned())],
            ..DoorSpec::default()
        };
        assert_eq!(
            spec.read().unwrap_err().to_string(),
            "the environment variable FLASHRIG_NO_SUCH_VARIABLE for the header X-A is not set or is \
             empty"
        );
    }
}
