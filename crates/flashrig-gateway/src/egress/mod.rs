//! The egress guard: a proxy address on loopback, one per session, that lets nobody out.
//!
//! Agents phone home: statistics, updates, model lists, plugin packages. On a machine without a
//! way out such requests hang until somebody's time limit, and on one with it the prompt leaves.
//! The guard answers at once, says no, and writes down who was asked for. Loopback passes, and so
//! does what an allow-list names; nothing else is ever connected to or even looked up.
//!
//! It only sees programs that honour proxy settings. It knows nothing of agents, tasks or
//! experiments, keeps no paths, headers or bodies, and never touches the LLM server's traffic,
//! which goes through `gateway`.
//!
//! | file | its one job |
//! |---|---|
//! | `allow` | destinations and the patterns that allow them |
//! | `guard` | the listener: open, accept, tell protocols apart, close |
//! | `answer` | one HTTP request: CONNECT or absolute form; refused, tunnelled or forwarded |
//! | `socks` | SOCKS clients, refused in their own words |
//! | `shared` | what all connections of a guard share |
//! | `counts` | what is written down, bounded |
//! | `environment` | the variables that programs look for a proxy in |

mod allow;
mod answer;
mod counts;
mod environment;
mod guard;
mod shared;
mod socks;

pub use allow::{AllowList, Destination, Pattern, PatternError};
pub use environment::{LOOPBACK_NAMES, proxy_environment};
pub use guard::{EgressGuard, GuardConfig, GuardError};
