//! Tasks and fixtures are read from folders and from the binary, and every fault in them is told
//! with file, place and field.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may panic"
)]

mod fixture_errors;
mod library;
mod project;
mod syntax;
mod task_errors;
