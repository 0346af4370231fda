//! What is built into the binary: tasks and fixtures, as they stand in the repository.
//!
//! A file or folder of the same name in the user's project wins; that rule is applied by the
//! rooms that load things (`task`), not here.

use include_dir::{Dir, include_dir};

/// `tasks/`: one folder a task.
pub static TASKS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/tasks");
/// `fixtures/`: one folder a fixture.
pub static FIXTURES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures");
