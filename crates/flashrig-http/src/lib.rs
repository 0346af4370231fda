//! HTTP/1 to an LLM server: its address and key, connections that know the instants of their
//! sockets, and one small request for everything that is not measured.
//!
//! There is one kind of connection, for measured and unmeasured requests alike. A [`Pool`] holds
//! the idle ones of a server and hands one out with each answer; whoever holds it drives it.
//!
//! | file | its one job |
//! |---|---|
//! | `address` | a server's address as people write it, validated |
//! | `door` | what opens a server's door: key, user name and password, headers, a CA |
//! | `upstream` | a server: its address and what opens its door |
//! | `tls` | whom this machine trusts, and what is wrong with a handshake |
//! | `transport` | opens connections: plain TCP, TLS, Unix sockets |
//! | `turned_away` | redirects, and what a refusal asks for |
//! | `secret` | a value that is not printed |
//! | `redact` | what counts as a secret, and taking it out of texts and streams |
//! | `stamped` | a socket that notes when it was read and flushed |
//! | `connection` | one connection: open, drive, send, read |
//! | `pool` | which connection takes the next request; the one retry |
//! | `ask` | one small request |
//! | `lag` | how late the event loop is, which is in every instant |
//!
//! Tasks, experiments, sessions and records must not enter.

mod address;
mod ask;
mod connection;
mod door;
mod lag;
mod pool;
mod redact;
mod secret;
pub mod stamped;
mod tls;
mod transport;
mod turned_away;
mod upstream;

pub use address::{Address, UpstreamError, without_user_info};
pub use ask::{Answer, HttpError, ask, send};
pub use connection::{Connection, describe};
pub use door::{Door, DoorError, KeyStyle, X_API_KEY};
pub use lag::{LagMeter, Lateness};
pub use pool::{Pool, SendClocks, SendError, Sending};
pub use redact::{Redactor, StreamRedactor, is_secret};
pub use secret::Secret;
pub use tls::CaError;
pub use turned_away::{Redirect, TurnedAway};
pub use upstream::Upstream;
