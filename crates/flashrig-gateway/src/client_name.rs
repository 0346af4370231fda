//! Names of clients, and the path prefix that carries one.

use hyper::http::Uri;

/// What precedes a client's name in a path; the server gets the rest.
pub(super) const PREFIX: &str = "/client/";
/// The longest name, in bytes.
const LONGEST_NAME: usize = 40;

/// Why a name cannot be a client's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot name a client; use 1 to 40 letters, digits, dots, dashes and underscores")]
pub struct BadName(String);

/// A client's name: letters, digits, `.`, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientName(String);

impl ClientName {
    /// Checks `name`.
    ///
    /// # Errors
    /// It is empty, too long, or holds other characters.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let good = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits);
        let shown = || name.chars().take(LONGEST_NAME).collect();
        good.then(|| Self(name.to_owned()))
            .ok_or_else(|| BadName(shown()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Takes `/client/NAME` off the path and gives the name.
pub(super) fn take_prefix(uri: &mut Uri) -> Option<Result<ClientName, BadName>> {
    let rest = uri.path().strip_prefix(PREFIX)?;
    let (name, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let name = ClientName::new(name);
    let query = uri.query().map_or_else(String::new, |q| format!("?{q}"));
    // What is left of a path and query that were read is one.
    if let Ok(stripped) = format!("{path}{query}").parse() {
        *uri = stripped;
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(path: &str) -> (Option<Result<String, BadName>>, String) {
        let mut uri: Uri = path.parse().unwrap();
        let name = take_prefix(&mut uri).map(|name| name.map(|n| n.as_str().to_owned()));
        (name, uri.to_string())
    }

    #[test]
    fn a_clients_prefix_is_taken_off_the_path_and_the_query_stays() {
        let named = |name: &str, rest: &str| (Some(Ok(name.to_owned())), rest.to_owned());
        assert_eq!(
            taken("/client/anna/v1/messages?beta=true"),
            named("anna", "/v1/messages?beta=true")
        );
        assert_eq!(taken("/client/anna"), named("anna", "/"));
        assert_eq!(taken("/client/anna?x=1"), named("anna", "/?x=1"));
        assert_eq!(
            taken("http://h:1/client/a.b-c_1/v1/models"),
            named("a.b-c_1", "/v1/models")
        );
        assert_eq!(taken("/clients/anna"), (None, "/clients/anna".to_owned()));
        assert_eq!(taken("/v1/client/a"), (None, "/v1/client/a".to_owned()));
    }

    #[test]
    fn names_are_short_and_plain_so_that_they_can_stand_in_labels_and_paths() {
        let long = "x".repeat(41);
        for bad in ["", "(unknown)", "a b", "a/b", "é", "a\"b", long.as_str()] {
            assert!(ClientName::new(bad).is_err(), "{bad}");
        }
        assert!(ClientName::new(&long[..40]).is_ok());
        assert!(matches!(taken("/client//v1/messages").0, Some(Err(_))));
    }
}
