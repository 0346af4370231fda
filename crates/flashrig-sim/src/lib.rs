#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! `server` listens, `http` routes and `intake` takes requests in. `anthropic` and `openai`
//! translate to and from the neutral `ask`. `brain` decides what to answer, `engine` decides when
//! (with `cache` and `memory`), and `stream` writes it out. `truth` and `server_log` record it.

mod anthropic;
mod ask;
pub mod brain;
mod cache;
mod counters;
mod engine;
mod faults;
mod http;
mod intake;
mod memory;
mod metrics;
mod noise;
mod openai;
mod profile;
mod reply;
mod server;
mod server_log;
mod service;
mod shapes;
mod stream;
mod tokens;
pub mod truth;
mod walkthrough;

pub use faults::{Faults, RefusedShape, StreamFault, StreamFaultKind};
pub use profile::{
    ByteSize, DecodePoint, MemoryRefusal, PrefillOrder, ProfileError, SimProfile, SimTable, Timing,
};
pub use server::{Sim, SimConfig, SimError, SimHandle};
pub use walkthrough::{Script, Step, Walkthrough};
