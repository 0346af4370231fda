//! Real agents and real servers, installed by flashrig from their registries.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::RwLock;

/// Tests that compare times have the machine to themselves. The others share it: one that runs
/// agents, beside one that runs a server.
static MACHINE: RwLock<()> = RwLock::new(());

mod agents;
mod servers;
#[path = "../commands/support/mod.rs"]
#[expect(dead_code, reason = "a part of it is used here")]
mod support;
