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

pub use numbers::{
    format_count, format_duration, format_rough, format_seconds, format_tokens, in_a_row, plural,
    times_over,
};
