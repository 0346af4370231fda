#![doc = include_str!("../README.md")]

mod duration;
mod lists;
mod units;

pub use duration::{DurationError, format_duration, parse_duration};
pub use lists::{Numbers, Sizes, parse_numbers, parse_sizes};
pub use units::{
    format_count, format_rough, format_seconds, format_tokens, parse_count, plural, whole_number,
};
