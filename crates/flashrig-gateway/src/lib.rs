//! The gateway: one loopback listener per session, between an agent and the LLM server; or one
//! standing listener for many clients.
//!
//! It streams byte for byte in both directions and writes down what it saw: one [`Attempt`] per
//! request, with its clocks and the way it ended. It knows sessions only by a label and a token.
//! Tasks, agents, experiments, verdicts and files must not enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `session` | a session's own listener: open, close, its rows |
//! | `standing_listener` | the standing listener: open, drain, close |
//! | `limits` | bounds of what a listener takes |
//! | `listener` | the accept loop |
//! | `connection` | one client's connection, also when its head cannot be read |
//! | `slow_head` | the limit on heads that do not come to their end |
//! | `raw_answer` | answers where hyper gives none |
//! | `client_connection` | what a request knows of the connection that it came by |
//! | `shared` | what all requests of a listener share |
//! | `auth` | authenticates requests and finds their client |
//! | `client_name` | names of clients, and the path prefix that carries one |
//! | `registry` | what a standing listener asks about its clients |
//! | `origin_check` | refuses what web pages send to a listener without tokens |
//! | `exchange` | one request from head to response head: check, forward, answer |
//! | `intake` | a request's body on its way in |
//! | `body_budget` | how many bytes of request bodies are held at a time |
//! | `refusal` | why a request got no answer from the server |
//! | `reply` | the gateway's own answers, in the client's dialect |
//! | `probe` | what the gateway answers in the server's place, when it is set to |
//! | `headers` | hop-by-hop headers, credentials in and out |
//! | `document` | a request body, parsed once |
//! | `request` | what a request body says about itself |
//! | `route` | the dialect, from method and path |
//! | `json` | byte ranges inside JSON text, so that bodies can be read and spliced unparsed |
//! | `nonce` | the cold-cache line at the start of the prompt |
//! | `gate` | how many requests of all sessions are in the server at once, and who is next |
//! | `prompt` | the longest prompt that is let through, estimated |
//! | `body` | the response body on its way to the client; knows how it ended, also when dropped |
//! | `request_log` | the rows; every attempt that began has one |
//! | `progress` | how far the answer to a request in flight has come |
//! | `events` | what observers get while it runs |
//! | `event_loop` | the thread on which all of this runs |
//! | `standing` | figures of a standing listener's clients: table, metrics, log file |
//! | `egress` | the egress guard, a proxy address that lets nobody out |
//!
//! Bodies pass on to the observer in events; threads and prefixes are worked out from them in
//! `flashrig-record`.
//!
//! [`Attempt`]: flashrig_record::Attempt

mod auth;
mod body;
mod body_budget;
mod client_connection;
mod client_name;
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
mod limits;
mod listener;
mod nonce;
mod origin_check;
mod probe;
mod progress;
mod prompt;
mod raw_answer;
mod refusal;
mod registry;
mod reply;
mod request;
mod request_log;
mod route;
mod session;
mod shared;
mod slow_head;
pub mod standing;
mod standing_listener;

pub use client_name::{BadName, ClientName};
pub use event_loop::EventLoop;
pub use events::{Activity, GatewayEvent, Observer};
pub use gate::{Gate, GateClient, MAX_OVERTAKEN, Permit, Turn};
pub use limits::{Limits, Unauthenticated};
pub use progress::{Generated, RequestProgress};
pub use registry::{ClientRegistry, Page};
pub use session::{GatewaySession, ListenConfig, OpenError, Session};
pub use standing_listener::{Standing, StandingConfig};
