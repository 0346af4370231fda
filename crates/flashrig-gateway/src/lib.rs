//! The gateway: one loopback listener per session, between an agent and the LLM server; or one
//! standing listener for many clients.
//!
//! It streams byte for byte in both directions and writes down what it saw: one [`Attempt`] per
//! request, with its clocks and the way it ended. It knows sessions only by a label and a token.
//! Tasks, agents, experiments, verdicts and files must not enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `session` | listeners: open, accept, drain, close |
//! | `connection` | one client's connection, also when its head cannot be read |
//! | `doors` | who comes in, under which name, and in whose ledger that stands |
//! | `stranger` | what web pages send to a listener without tokens |
//! | `exchange` | one request from head to response head: check, forward, answer |
//! | `intake` | a request's body on its way in |
//! | `probe` | what the gateway answers in the server's place, when told to |
//! | `upstream` | the server's address, path joining, the key |
//! | `link` | connections to the server: dial, drive, the one allowed retry |
//! | `mask` | takes the server's key out of what the server says |
//! | `slow_head` | the limit on heads that do not come to their end |
//! | `headers` | hop-by-hop headers, credentials in and out |
//! | `request` | what a request body says about itself |
//! | `route` | dialect and role, by path and structure |
//! | `json` | byte ranges inside JSON text, so that bodies can be read and spliced unparsed |
//! | `nonce` | the cold-cache line at the start of the prompt |
//! | `gate` | how many requests of all sessions are in the server at once, and who is next |
//! | `prompt` | the longest prompt that is let through, estimated |
//! | `body` | the response body on its way to the client; knows how it ended, also when dropped |
//! | `document` | a request body, looked into once |
//! | `ledger` | the rows; every attempt that began has one |
//! | `reply` | the gateway's own answers, in the client's dialect |
//! | `events` | what listeners are told while it runs |
//! | `event_loop` | the thread on which all of this runs |
//! | `lag` | how late the gateway's own event loop is |
//!
//! Bodies pass on to the listener in events; threads and prefixes are worked out from them elsewhere.
//!
//! [`Attempt`]: flashrig_record::Attempt

mod auth;
mod body;
mod connection;
mod document;
pub mod egress;
mod event_loop;
mod events;
mod exchange;
mod gate;
mod headers;
mod intake;
mod json;
mod ledger;
mod nonce;
mod origin_check;
mod probe;
mod prompt;
mod reply;
mod request;
mod route;
mod session;
mod slow_head;
pub mod standing;

/// What must hold for every answer, for the fuzz target: any chunking is read alike. Panics when
/// it does not hold.
#[cfg(fuzzing)]
pub fn fuzz_any_chunking(answer: &[u8], cuts: &[u8]) {
    llm_observe::fuzz::any_chunking(answer, cuts);
}

pub use auth::{BadName, ClientName, ClientRegistry, Page};
pub use event_loop::EventLoop;
pub use events::{Activity, GatewayEvent, Observer};
pub use gate::{Gate, GateClient, MAX_OVERTAKEN, Permit, Turn};
pub use route::settle_roles;
pub use session::{
    GatewaySession, Limits, ListenConfig, OpenError, Session, Standing, StandingConfig,
};
