//! `fit` and `ttft`: synthetic sessions, and what their preparation has in common.

pub mod fit;
mod prepare;
pub mod ttft;

pub use prepare::Reported;
