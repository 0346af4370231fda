//! Who comes in by a listener, and in whose ledger their requests stand.
//!
//! A session's listener has one door with one token. A standing one has a door for each client,
//! told by its token, or by a path prefix where no tokens are set.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::http::Uri;
use hyper::http::header::HeaderMap;
use tokio::sync::watch;

use super::events::{Activity, Observer};
use super::gate::{Gate, GateClient};
use super::headers::{self, Credentials};
use super::ledger::{Keep, Ledger};
use super::origin_check;
use flashrig_clock::Origin;
use flashrig_http::Secret;

/// What stands before a client's name in a path; the rest is what the server gets.
const PREFIX: &str = "/client/";
/// Names beyond this many share [`OTHERS`], so that made-up ones cannot fill the memory.
const MOST_NAMES: usize = 64;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 40;

/// The client of requests that name none, where no tokens are set.
pub const DEFAULT: &str = "default";
/// The client of requests that show no valid token, that a web page made, or that cannot be read. Not a valid name.
pub const UNKNOWN: &str = "(unknown)";
/// The client of requests with a new name when there are too many. Not a valid name.
pub const OTHERS: &str = "(others)";

/// Follows the clients of a standing listener.
pub trait ClientRegistry: Send + Sync + 'static {
    /// A client is seen for the first time (those with a token when the listener opens).
    /// `activity` follows what it is doing; the observer hears of its requests.
    fn client(&self, name: &str, activity: watch::Receiver<Activity>) -> Box<dyn Observer>;

    /// What to answer on a path that is the listener's own; `None` forwards the request.
    fn page(&self, path: &str) -> Option<Page>;
}

/// One of the listener's own pages, never forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// Its text.
    pub text: String,
    /// Whether only those with a client's token may read it, where tokens are set.
    pub private: bool,
}

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

/// What became of a request at the door.
pub(super) struct Entry {
    pub(super) ledger: Arc<Ledger>,
    /// The client's own way into the gate, when there is one.
    pub(super) gate: Option<GateClient>,
    pub(super) admission: Admission,
}

/// Whether a request may go on.
pub(super) enum Admission {
    /// By its credentials.
    By(Credentials),
    /// Its path names a client that it is not, or none that there can be.
    WrongName(String),
    /// A web page made it, or it is for another host, and there are no tokens.
    CrossOrigin(String),
}

/// Whether one of the listener's own pages may be read.
pub(super) enum Access {
    Granted,
    TokenNeeded,
    /// As in [`Admission::Stranger`].
    CrossOrigin(String),
}

/// The doors of a listener.
pub(super) enum Auth {
    /// A session's only one.
    One {
        token: Secret,
        ledger: Arc<Ledger>,
        gate: Option<GateClient>,
    },
    /// One for each client.
    Many(Clients),
}

impl Auth {
    /// Lets a request in; takes a client's prefix off its path.
    pub(super) fn enter(&self, uri: &mut Uri, headers: &HeaderMap) -> Entry {
        match self {
            Self::One {
                token,
                ledger,
                gate,
            } => Entry {
                ledger: Arc::clone(ledger),
                gate: gate.clone(),
                admission: Admission::By(headers::check(headers, token)),
            },
            Self::Many(clients) => clients.enter(uri, headers),
        }
    }

    /// Where requests are written down that cannot be read.
    pub(super) fn unread(&self) -> Arc<Ledger> {
        match self {
            Self::One { ledger, .. } => Arc::clone(ledger),
            Self::Many(clients) => clients.client(UNKNOWN).ledger,
        }
    }

    /// The listener's own page at `uri`, and whether `headers` let it be read.
    pub(super) fn page(&self, uri: &Uri, headers: &HeaderMap) -> Option<(Page, Access)> {
        let Self::Many(clients) = self else {
            return None;
        };
        let page = clients.client_registry.page(uri.path())?;
        let access = match clients.origin_check(uri, headers) {
            Some(message) => Access::CrossOrigin(message),
            None if !page.private || clients.tokens.is_empty() => Access::Granted,
            None if clients.by_token(headers).is_ok() => Access::Granted,
            None => Access::TokenNeeded,
        };
        Some((page, access))
    }

    /// Attempts that end from now on were cut off by the listener's closing.
    pub(super) fn start_closing(&self) {
        match self {
            Self::One { ledger, .. } => ledger.start_closing(),
            Self::Many(clients) => {
                let known = clients.known();
                known.values().for_each(|c| c.ledger.start_closing());
            }
        }
    }
}

/// The clients of a standing listener.
pub(super) struct Clients {
    tokens: Vec<(ClientName, Secret)>,
    client_registry: Arc<dyn ClientRegistry>,
    gate: Option<Arc<Gate>>,
    listen: IpAddr,
    origin: Origin,
    known: Mutex<BTreeMap<String, Client>>,
}

/// What the listener keeps of a client.
#[derive(Clone)]
struct Client {
    ledger: Arc<Ledger>,
    gate: Option<GateClient>,
}

impl Clients {
    /// With no `tokens` everybody may come in, under any name, but web pages. `listen` is the
    /// address that is listened on.
    pub(super) fn new(
        tokens: Vec<(ClientName, Secret)>,
        client_registry: Arc<dyn ClientRegistry>,
        gate: Option<Arc<Gate>>,
        listen: IpAddr,
        origin: Origin,
    ) -> Self {
        let clients = Self {
            tokens,
            client_registry,
            gate,
            listen,
            origin,
            known: Mutex::default(),
        };
        for (name, _) in &clients.tokens {
            clients.client(name.as_str());
        }
        clients
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Client>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, name: &str) -> Client {
        let mut known = self.known();
        let special = [DEFAULT, UNKNOWN, OTHERS].contains(&name);
        let full = known.len() >= MOST_NAMES + 3 && !special && !known.contains_key(name);
        let name = if full { OTHERS } else { name };
        let new = || Client {
            ledger: Ledger::with(self.origin.clone(), Keep::Nothing, |activity| {
                self.client_registry.client(name, activity)
            }),
            gate: self.gate.as_ref().map(Gate::client),
        };
        known.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// The client whose token `headers` hold. Every token is looked at, whichever fits.
    fn by_token(&self, headers: &HeaderMap) -> Result<&ClientName, Credentials> {
        let mut found = Err(Credentials::Absent);
        for (name, token) in &self.tokens {
            match headers::check(headers, token) {
                Credentials::Valid => found = Ok(name),
                other if found.is_err() => found = Err(other),
                _ => {}
            }
        }
        found
    }

    /// Why a request is a stranger's, where there are no tokens to tell.
    fn origin_check(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let message = || origin_check::message(uri, headers, self.listen);
        self.tokens.is_empty().then(message).flatten()
    }

    fn enter(&self, uri: &mut Uri, headers: &HeaderMap) -> Entry {
        let origin_check = self.origin_check(uri, headers);
        let prefix = take_prefix(uri);
        let entry = |name: &str, admission| {
            let Client { ledger, gate } = self.client(name);
            Entry {
                ledger,
                gate,
                admission,
            }
        };
        if let Some(message) = origin_check {
            return entry(UNKNOWN, Admission::CrossOrigin(message));
        }
        let refused = |message: String| entry(UNKNOWN, Admission::WrongName(message));
        let prefix = match prefix {
            Some(Err(bad)) => return refused(bad.to_string()),
            Some(Ok(name)) => Some(name),
            None => None,
        };
        if self.tokens.is_empty() {
            let name = prefix.as_ref().map_or(DEFAULT, ClientName::as_str);
            return entry(name, Admission::By(Credentials::Valid));
        }
        match (self.by_token(headers), prefix) {
            (Ok(client), Some(prefix)) if *client != prefix => refused(format!(
                "this token is not that of the client `{}` in the path; leave `{PREFIX}{}` out, or \
                 send that client's token",
                prefix.as_str(),
                prefix.as_str()
            )),
            (Ok(client), _) => entry(client.as_str(), Admission::By(Credentials::Valid)),
            (Err(credentials), _) => entry(UNKNOWN, Admission::By(credentials)),
        }
    }
}

/// Takes `/client/NAME` off the path and gives the name.
fn take_prefix(uri: &mut Uri) -> Option<Result<ClientName, BadName>> {
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
