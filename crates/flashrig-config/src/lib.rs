//! What people type and write, turned into what the core can hold: units, names, files.
//!
//! Validation happens here and in the rooms' own `raw` modules, once, at the edge.

mod document;
mod duration;
mod errors;
mod expression;
mod file_error;
mod lists;
mod names;
mod places;
mod profiles;
mod template;
mod units;

pub use document::Document;
pub use duration::{DurationError, format_duration, parse_duration};
pub use errors::error_chain;
pub use expression::Expression;
pub use file_error::{FileError, Position, read};
pub use lists::{Numbers, Sizes, parse_numbers, parse_sizes};
pub use names::nearest;
pub use places::cache_folder;
pub use profiles::{ProfileError, Profiles};
pub use template::Template;
pub use units::{format_count, format_rough, format_seconds, format_tokens, parse_count, plural};
