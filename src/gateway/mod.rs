//! The gateway: one loopback listener per session, between an agent and the LLM server.
//!
//! It streams byte for byte in both directions and writes down what it saw: one [`Attempt`] per
//! request, with its clocks and the way it ended. It knows sessions only by a label and a token.
//! Tasks, agents, experiments, verdicts and files must not enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `session` | a listener with its token: open, accept, close |
//! | `exchange` | one request from head to response head: read, check, forward, answer |
//! | `upstream` | the server's address, path joining, the key |
//! | `link` | connections to the server: dial, drive, the one allowed retry |
//! | `stamped` | sockets that note when they were last read |
//! | `headers` | hop-by-hop headers, credentials in and out |
//! | `request` | what a request body says about itself |
//! | `route` | dialect and role, by path and structure |
//! | `json` | byte ranges inside JSON text, so that bodies can be read and spliced unparsed |
//! | `nonce` | the cold-cache line at the start of the prompt |
//! | `body` | the response body on its way to the client; knows how it ended, also when dropped |
//! | `observe` | what a response says: SSE, the dialects, errors |
//! | `ledger` | the rows; every attempt that began has one |
//! | `reply` | the gateway's own answers, in the client's dialect |
//! | `events` | what listeners are told while it runs |
//!
//! Later tenants have their places: a gate goes between reading and forwarding in `exchange`
//! (where `permit_s` is taken). Bodies pass on to the listener in events; threads and prefixes are
//! worked out from them elsewhere.
//!
//! [`Attempt`]: crate::records::Attempt

mod body;
mod events;
mod exchange;
mod headers;
mod json;
mod ledger;
mod link;
mod nonce;
mod observe;
mod reply;
mod request;
mod route;
mod session;
mod stamped;
mod upstream;

pub use events::{Activity, GatewayEvent, Observer};
pub use route::settle_roles;
pub use session::{GatewaySession, Limits, ListenConfig, OpenError, Session};
pub use upstream::{KeyStyle, Secret, Upstream, UpstreamError};
