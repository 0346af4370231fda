//! A server that can be asked: opened, identified, idle or busy, alive or not.
//!
//! | file | its one job |
//! |---|---|
//! | `open` | from a target to an address that can be asked |
//! | `identity` | who answers there |
//! | `connect` | both, and the model that will be asked for |
//! | `idle` | waiting until the server works on nothing |
//! | `pulse` | signs of life of a server that has stopped answering |
//! | `stall` | what is said of a server that accepts requests and does not generate |

mod connect;
mod error;
mod identity;
mod idle;
mod open;
mod pulse;
mod stall;

pub use connect::{Connected, connect};
pub use error::ConnectError;
pub use identity::{Identity, model_list};
pub use idle::{Idle, IdleError, still_there, wait_idle};
pub use open::{Opened, Wanted, open};
pub use pulse::{pulse, watch_pulse};
pub use stall::{Served, log_tail, stall};
