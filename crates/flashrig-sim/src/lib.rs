//! The embedded simulated LLM server: a server like any other, reached over HTTP.
//!
//! It speaks the real protocols, queues, prefills, caches and decodes by a timing profile, and
//! answers by playing walkthroughs through whatever tools the request offers. It exists so that
//! everything else can be tried, tested and shown on a machine with no model.
//!
//! What must not enter: anything of `run` or `gateway`. The simulator is given its walkthroughs
//! as data and learns everything else from the requests, exactly as a real server would.
//!
//! Inside: `server` listens, `http` routes, `intake` takes requests in, `anthropic` and `openai` translate to and from the
//! neutral `ask`, `brain` decides what to answer, `engine` decides when (with `cache` and `memory`),
//! `stream` writes it out, `truth` and `server_log` tell of it.

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
mod shapes;
mod stream;
mod tokens;
pub mod truth;
mod walkthrough;

pub use faults::{Faults, RefusedShape, StreamFault, StreamFaultKind};
pub use profile::{
    ByteSize, DecodePoint, MemoryRefusal, PrefillOrder, ProfileError, SimProfile, SimTable, Timing,
};
pub use server::{Script, Sim, SimConfig, SimError, SimHandle};
pub use walkthrough::{Step, Walkthrough};
