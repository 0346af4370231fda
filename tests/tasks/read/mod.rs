//! Tasks and fixtures are read from folders and from the binary, and every fault in them is told
//! with file, place and field.
mod fixture_errors;
mod library;
mod project;
mod syntax;
mod task_errors;
