//! The one place where facts become sentences: `Display` of every fact. Plain English, lower case,
//! fragments that compose with `; `.

mod cell;
mod load;
mod numbers;
mod placed;
mod server;
mod session;
mod sweep;
mod verdict;

pub use numbers::{in_a_row, times_over};
