//! A walkthrough: the steps by which the simulated server solves a task through whatever tools
//! the agent offers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps of one task, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walkthrough {
    /// Format name: `flashrig.walkthrough/1`.
    pub schema: String,
    /// Steps, in order. The last one is a `say` that ends the session.
    pub steps: Vec<Step>,
}

/// One step: what is said before it, and what is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Read a file.
    Read {
        /// Text said before it.
        #[serde(default)]
        say: Option<String>,
        /// Path relative to the workspace.
        path: String,
    },
    /// Search file contents.
    Search {
        /// Text said before it.
        #[serde(default)]
        say: Option<String>,
        /// Regular expression, understood alike by grep -E and ripgrep.
        pattern: String,
        /// Folder or file, relative to the workspace; the whole of it when absent.
        #[serde(default)]
        path: Option<String>,
    },
    /// Replace one exact, unique text in a file.
    Edit {
        /// Text said before it.
        #[serde(default)]
        say: Option<String>,
        /// Path relative to the workspace.
        path: String,
        /// The text as it stands; occurs exactly once.
        old: String,
        /// The text that replaces it.
        new: String,
    },
    /// Write a whole file.
    Write {
        /// Text said before it.
        #[serde(default)]
        say: Option<String>,
        /// Path relative to the workspace.
        path: String,
        /// Contents.
        content: String,
    },
    /// Run a shell command in the workspace.
    Run {
        /// Text said before it.
        #[serde(default)]
        say: Option<String>,
        /// The command line, for `sh`.
        command: String,
    },
    /// Say something. As the last step it ends the session.
    Say {
        /// The text.
        text: String,
    },
}

/// A walkthrough, and the prompt by which it is recognised.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the task.
    pub name: String,
    /// The whole prompt of the task.
    pub prompt: String,
    /// The steps.
    pub walkthrough: Walkthrough,
}
