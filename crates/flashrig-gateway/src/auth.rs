//! Authenticates requests, and finds the client whose request log they are written to.
//!
//! A session's listener has one token and one log. A standing listener has a log for each client;
//! the client is identified by its token, or by a path prefix where no tokens are set.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::http::Uri;
use hyper::http::header::HeaderMap;
use parking_lot::{Mutex, MutexGuard};

use super::client_name::{ClientName, PREFIX, take_prefix};
use super::gate::{Gate, GateClient};
use super::headers::{self, Credentials};
use super::origin_check;
use super::registry::{ClientRegistry, Page};
use super::request_log::{RequestLog, Retention};
use flashrig_clock::Origin;
use flashrig_http::Secret;

/// Names beyond this many share [`OTHERS`], so that made-up ones cannot fill the memory.
const MOST_NAMES: usize = 64;

/// The client of requests that name none, where no tokens are set.
pub const DEFAULT: &str = "default";
/// The client of requests that show no valid token, that a web page made, or that cannot be read. Not a valid name.
pub const UNKNOWN: &str = "(unknown)";
/// The client of requests with a new name when there are too many. Not a valid name.
pub const OTHERS: &str = "(others)";

/// Whose request it is, and whether it may go on.
pub(super) struct Identified {
    pub(super) request_log: Arc<RequestLog>,
    /// The client's own way into the gate, when there is one.
    pub(super) gate: Option<GateClient>,
    pub(super) admission: Admission,
}

/// Whether a request may go on.
pub(super) enum Admission {
    /// Its credentials decide.
    Credentials(Credentials),
    /// Its path names a client that it is not, or none that there can be.
    WrongName(String),
    /// A web page made it, or it is for another host, and there are no tokens.
    CrossOrigin(String),
}

/// Whether one of the listener's own pages may be read.
pub(super) enum Access {
    Granted,
    TokenNeeded,
    /// As in [`Admission::CrossOrigin`].
    CrossOrigin(String),
}

/// How a listener authenticates requests.
pub(super) enum Auth {
    /// By the session's one token.
    Session {
        token: Secret,
        request_log: Arc<RequestLog>,
        gate: Option<GateClient>,
    },
    /// By the tokens or names of many clients.
    Clients(Clients),
}

impl Auth {
    /// Finds the client of a request; takes its prefix off the path.
    pub(super) fn identify(&self, uri: &mut Uri, headers: &HeaderMap) -> Identified {
        match self {
            Self::Session {
                token,
                request_log,
                gate,
            } => Identified {
                request_log: Arc::clone(request_log),
                gate: gate.clone(),
                admission: Admission::Credentials(headers::check(headers, token)),
            },
            Self::Clients(clients) => clients.identify(uri, headers),
        }
    }

    /// The log of requests whose client cannot be known.
    pub(super) fn unknown_log(&self) -> Arc<RequestLog> {
        match self {
            Self::Session { request_log, .. } => Arc::clone(request_log),
            Self::Clients(clients) => clients.client(UNKNOWN).request_log,
        }
    }

    /// The listener's own page at `uri`, and whether `headers` let it be read.
    pub(super) fn page(&self, uri: &Uri, headers: &HeaderMap) -> Option<(Page, Access)> {
        let Self::Clients(clients) = self else {
            return None;
        };
        let page = clients.registry.page(uri.path())?;
        let access = match clients.origin_violation(uri, headers) {
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
            Self::Session { request_log, .. } => request_log.start_closing(),
            Self::Clients(clients) => {
                let known = clients.known();
                known.values().for_each(|c| c.request_log.start_closing());
            }
        }
    }
}

/// The clients of a standing listener.
pub(super) struct Clients {
    tokens: Vec<(ClientName, Secret)>,
    registry: Arc<dyn ClientRegistry>,
    gate: Option<Arc<Gate>>,
    listen: IpAddr,
    origin: Origin,
    known: Mutex<BTreeMap<String, Client>>,
}

/// What the listener keeps of a client.
#[derive(Clone)]
struct Client {
    request_log: Arc<RequestLog>,
    gate: Option<GateClient>,
}

impl Clients {
    /// With no `tokens` everybody may come in, under any name, but web pages. `listen` is the
    /// address that is listened on.
    pub(super) fn new(
        tokens: Vec<(ClientName, Secret)>,
        registry: Arc<dyn ClientRegistry>,
        gate: Option<Arc<Gate>>,
        listen: IpAddr,
        origin: Origin,
    ) -> Self {
        let clients = Self {
            tokens,
            registry,
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
        self.known.lock()
    }

    fn client(&self, name: &str) -> Client {
        let mut known = self.known();
        let special = [DEFAULT, UNKNOWN, OTHERS].contains(&name);
        let full = known.len() >= MOST_NAMES + 3 && !special && !known.contains_key(name);
        let name = if full { OTHERS } else { name };
        let new = || Client {
            request_log: RequestLog::with(self.origin.clone(), Retention::Nothing, |activity| {
                self.registry.client(name, activity)
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

    /// Why a web page may have made the request, where there are no tokens to tell.
    fn origin_violation(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let violation = || origin_check::violation(uri, headers, self.listen);
        self.tokens.is_empty().then(violation).flatten()
    }

    fn identify(&self, uri: &mut Uri, headers: &HeaderMap) -> Identified {
        let violation = self.origin_violation(uri, headers);
        let prefix = take_prefix(uri);
        let entry = |name: &str, admission| {
            let Client { request_log, gate } = self.client(name);
            Identified {
                request_log,
                gate,
                admission,
            }
        };
        if let Some(message) = violation {
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
            return entry(name, Admission::Credentials(Credentials::Valid));
        }
        match (self.by_token(headers), prefix) {
            (Ok(client), Some(prefix)) if *client != prefix => refused(format!(
                "this token is not that of the client `{}` in the path; leave `{PREFIX}{}` out, or \
                 send that client's token",
                prefix.as_str(),
                prefix.as_str()
            )),
            (Ok(client), _) => entry(client.as_str(), Admission::Credentials(Credentials::Valid)),
            (Err(credentials), _) => entry(UNKNOWN, Admission::Credentials(credentials)),
        }
    }
}
