//! What people type and write, turned into what the core can hold: units, names, files.
//!
//! Validation happens here and in the rooms' own `raw` modules, once, at the edge.

mod document;
mod errors;
mod expression;
mod file_error;
mod names;
mod places;
mod profiles;
mod serde_message;
mod template;

pub use document::Document;
pub use errors::{error_chain, without_temporary_name};
pub use expression::Expression;
pub use file_error::{FileError, Position, read};
pub use flashrig_units::*;
pub use names::{nearest, unknown};
pub use places::cache_folder;
pub use profiles::{ProfileError, Profiles};
pub use template::Template;
