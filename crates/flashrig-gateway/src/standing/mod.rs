//! The standing gateway: what people's everyday agents do at one server, counted and shown while
//! it goes on.
//!
//! It observes the gateway's events and turns them into figures: a table, Prometheus metrics,
//! a log. Forwarding (that is `gateway`), the terminal (that is `cli`), and experiments must not
//! enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `stats` | all clients of the listener: observes their requests, gives snapshots |
//! | `client_stats` | one client's figures and requests in flight |
//! | `histogram` | how often a duration was how long |
//! | `metrics` | a snapshot as Prometheus reads it; pure |
//! | `table` | a snapshot as people read it while the gateway runs; pure |
//! | `totals` | a snapshot as people read it at the end; pure |
//! | `finished` | a finished request as people read it; pure |
//! | `grid` | rows of cells in columns; pure |
//! | `log` | a file with a line for every request |

mod client_stats;
mod finished;
mod grid;
mod histogram;
mod log;
mod metrics;
mod snapshot;
mod stats;
mod table;
mod totals;

pub use client_stats::{ClientFigures, LiveRequest, LiveState, RequestKind, is_refusal};
pub use finished::finished_line;
pub use histogram::Histogram;
pub use log::{LogFileError, LogLine, LogWriter};
pub use metrics::metrics;
pub use snapshot::{ClientSnapshot, FinishedRequest, Snapshot};
pub use stats::{HEALTH_PATH, METRICS_PATH, StandingStats};
pub use table::table;
pub use totals::totals;
