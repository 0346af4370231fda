//! What servers tell of themselves, as documented and as recorded, and what their profiles make of it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod recordings;
mod samples;
