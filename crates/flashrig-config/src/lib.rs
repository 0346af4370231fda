//! What people type and write, turned into what the core can hold: units, names, files.
//!
//! Validation happens here and in the rooms' own `raw` modules, once, at the edge.

mod errors;
mod expression;
mod names;
mod places;
mod profiles;
mod template;
mod toml_file;

pub use errors::error_chain;
pub use expression::Expression;
pub use flashrig_units::*;
pub use names::nearest;
pub use places::cache_folder;
pub use profiles::{ProfileError, Profiles};
pub use template::Template;
pub use toml_file::{FileError, read, read_toml};
