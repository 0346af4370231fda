//! The standing gateway: what people's everyday agents do at one server, counted and shown while
//! it goes on.
//!
//! It listens to the gateway's own events and turns them into figures: a table, Prometheus metrics,
//! a log. Forwarding (that is `gateway`), the terminal (that is `cli`), and experiments must not
//! enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `board` | the clients of the listener: hears of their requests, gives snapshots |
//! | `tally` | one client's figures |
//! | `histogram` | how often a duration was how long |
//! | `metrics` | a snapshot as Prometheus reads it; pure |
//! | `table` | a snapshot, and a request, as people read it; pure |
//! | `log` | a file with a line for every request |

mod board;
mod histogram;
mod log;
mod metrics;
mod table;
mod tally;

pub use board::{Board, ClientSnapshot, HEALTH_PATH, METRICS_PATH, Received, Snapshot};
pub use histogram::Histogram;
pub use log::{Log, LogError, LogLine};
pub use metrics::metrics;
pub use table::{finished_line, table};
pub use tally::{ClientFigures, RequestKind, is_refusal};
