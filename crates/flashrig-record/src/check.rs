//! What verification found, and what the agent changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CheckDetail;
use flashrig_clock::Seconds;

/// How one check of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It exited with 0 and printed what it must.
    Passed,
    /// It exited with another code.
    Failed,
    /// It exited with 0, but never printed what a real pass prints.
    LacksOutput,
    /// A signal ended it.
    Killed,
    /// It ran into its time limit.
    TimedOut,
    /// It could not be started: no verdict about the agent's work.
    NotRun,
}

/// One check of a task, run on the verified tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The check's name in the task.
    pub name: String,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// The outcome with what belongs to it.
    pub detail: CheckDetail,
    /// Exit code; `None` unless it exited by itself.
    pub exit_code: Option<i32>,
    /// Its own time.
    pub duration_s: Seconds,
    /// The end of its standard output and standard error; bytes that are not UTF-8 are replaced.
    pub output_tail: String,
}

/// How a file differs from the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// New.
    Added,
    /// Other content or another executable bit.
    Modified,
    /// Gone. A rename is a deletion and an addition.
    Deleted,
    /// A file became a symbolic link, or the reverse.
    TypeChanged,
}

/// One file of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Path relative to the workspace; quoted as git does when it holds control characters or
    /// is not UTF-8.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// Inserted lines; 0 for binary files.
    pub insertions: u64,
    /// Deleted lines; 0 for binary files.
    pub deletions: u64,
    /// Whether either side is not text, so that the patch only names the file.
    pub binary: bool,
}

/// Why something in the workspace is not part of the patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Larger than a patch stores.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// A pipe, a socket or a device.
    Special,
    /// Inside a submodule, whose content the base does not hold.
    Submodule,
    /// In a folder nested deeper than a patch follows.
    TooDeep,
    /// A name that git cannot store.
    BadName,
}

/// Something in the workspace that is not part of the patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Path relative to the workspace, written like `ChangedFile::path`.
    pub path: String,
    /// Why.
    pub why: SkipReason,
}

/// How a workspace was copied from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyMethod {
    /// The file system shares the blocks.
    Reflink,
    /// Object files are hard links; all else was copied.
    HardLinkedObjects,
    /// Every byte was copied.
    Copied,
}
