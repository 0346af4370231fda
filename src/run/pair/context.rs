//! What the sessions of a pair have in common.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bodies::Bodies;
use super::machine::{Program, ServerAt};
use crate::agent::Places;
use crate::plan::Plan;
use crate::run::shared::bus::Bus;
use crate::run::shared::scratch::Scratch;
use crate::run::shared::stop::Stop;
use flashrig_gateway::EventLoop;
use flashrig_http::LagMeter;
use flashrig_process::Sandbox;
use flashrig_record::Dialect;
use flashrig_server::{Connected, Watcher};
use flashrig_workspace::Base;

/// Everything that a run needs, prepared.
#[derive(Debug)]
pub struct Context {
    /// What will be run.
    pub plan: Plan,
    /// The server.
    pub server: Connected,
    /// The protocols that agents speak, in which the server is warmed up.
    pub dialects: BTreeSet<Dialect>,
    /// Watches it.
    pub watcher: Watcher,
    /// The base of each session, in the order of the plan.
    pub bases: Vec<Base>,
    /// The folder for workspaces and homes.
    pub scratch: Scratch,
    /// The results folder.
    pub results: PathBuf,
    /// How process trees are kept together.
    pub sandbox: Sandbox,
    /// The flashrig binary.
    pub shim: PathBuf,
    /// The operator's environment, and where programs are looked for.
    pub places: Places,
    /// What tokens and nonces are made from.
    pub secret: String,
    /// Where everything is told.
    pub bus: Bus,
    /// The wish to stop.
    pub stop: Stop,
    /// Reads and keeps the bodies of requests and answers.
    pub bodies: Bodies,
    /// Whether workspaces are kept.
    pub keep: bool,
    /// Where the server runs.
    pub server_at: ServerAt,
    /// The agents' programs, as they were when the run began.
    pub programs: Vec<Program>,
    /// Processors.
    pub cores: Option<u32>,
    /// Measures how late the rig's own event loop is.
    pub lag: LagMeter,
    /// Where all listeners run.
    pub event_loop: EventLoop,
    /// Whether the note about users' repositories was given.
    pub noted: AtomicBool,
}

impl Context {
    /// Gives a remark, unless one was given in this run.
    pub fn note_once(&self, text: String) {
        if !self.noted.swap(true, Ordering::Relaxed) {
            self.bus.note(text);
        }
    }
}
