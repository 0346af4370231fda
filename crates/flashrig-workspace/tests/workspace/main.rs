//! Copies, patches and fingerprints of repositories.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod base;
mod fingerprint;
mod patch;
mod roundtrip;
mod text;
mod workspace_support;
