//! Tasks and fixtures: what an agent is asked to do, on what, and how the result is checked.
//!
//! This room reads and validates the data; it runs nothing and knows no experiment.

mod spec;
mod walkthrough;

pub use spec::*;
pub use walkthrough::*;
