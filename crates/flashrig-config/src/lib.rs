//! What people type and write, turned into what the core can hold: units, names, files.
//!
//! Validation happens here and in the rooms' own `raw` modules, once, at the edge.

mod duration;
mod errors;
mod lists;
mod names;
mod places;
mod profiles;
mod toml_file;
mod units;

pub use duration::{DurationError, duration_in_words, parse_duration};
pub use errors::in_words;
pub use lists::{Numbers, Sizes, parse_numbers, parse_sizes};
pub use names::nearest;
pub use places::cache_folder;
pub use profiles::{ProfileError, Profiles};
pub use toml_file::{FileError, read, read_toml};
pub use units::{count_in_words, parse_count, seconds_in_words};
