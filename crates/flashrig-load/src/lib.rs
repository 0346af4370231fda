//! Synthetic sessions: a streaming client of flashrig's own that behaves like long agent sessions,
//! with prompts of exactly so many tokens as the server counts, unlike for each session,
//! reproducible from a seed, and with facts hidden in them that are asked for later.
//!
//! It knows requests, sessions and turns. Grids, rounds, cells, verdicts, files and the terminal
//! must not enter this room; nor anything of the simulated server.
//!
//! | file | its one job |
//! |---|---|
//! | `aim` | what is asked of whom: server, model, dialect, limits |
//! | `client` | many requests: rows, gauges |
//! | `exchange` | one request from its sending to the end of its answer |
//! | `body` | request bodies as bytes that only ever grow at their end |
//! | `filler` | words, facts and questions, all from a seed |
//! | `prompt` | prompts put together from them |
//! | `calibrate` | how many tokens the server counts for each of them |
//! | `count` | the server's count of a prompt, where it has a route for it |
//! | `sizing` | how many lines make a prompt of so many tokens |
//! | `session` | a cold turn, then warm ones |
//! | `trial` | one small request that tries what a server takes |
//! | `warm` | an unscored session that meets what first requests pay |
//! | `side` | one short request beside the sessions |
//! | `meter` | what the client itself did meanwhile |

mod aim;
mod body;
mod calibrate;
mod client;
mod count;
mod error;
mod exchange;
mod filler;
mod meter;
mod prompt;
mod session;
mod shared;
mod side;
mod sizing;
mod trial;
mod warm;

pub use aim::{Aim, LoadDialect, LoadLimits};
pub use calibrate::{calibrate, choose_dialect};
pub use client::Client;
pub use error::LoadError;
pub use meter::Meter;
pub use session::{Prepared, SessionPlan, salt};
pub use shared::{Answer, Ask, SessionAttempt};
pub use side::{PreparedSide, SidePlan, side};
pub use trial::{READY, Trial, trial};
pub use warm::{WarmUp, warm_up};
