//! The supervising helper: our own binary, re-executed as `flashrig __supervise`, one per agent.
//!
//! It exists so that a tree of processes has an owner that does nothing else: it adopts orphans,
//! reaps everything (flashrig itself must not, because it would steal the children of its async
//! runtime), and ends the tree as soon as flashrig is gone, even by `kill -9`. Its standard input
//! is a socket to flashrig; its standard output and error are the agent's. Under bubblewrap it is
//! process 1 of the session's namespace.
//!
//! It is synchronous on purpose: the async runtime must not enter here.

mod inheritance;
mod reaper;
mod supervisor;

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

use super::ipc::{Notice, Order};
use super::usage::ExitStatus;
use flashrig_clock::Stamp;
use supervisor::Supervisor;

/// What the helper waits for.
enum Event {
    Order(Order),
    /// flashrig closed its end, or is gone.
    OwnerGone,
    /// A child, its own or adopted, was reaped.
    Reaped {
        pid: u32,
        status: ExitStatus,
        stamp: Stamp,
    },
    /// No child is left.
    Childless,
}

/// The first argument that starts the helper instead of flashrig's own command line.
pub const SUBCOMMAND: &str = "__supervise";

/// Runs the helper until its tree is gone.
///
/// The exit code is for people who start it by hand: 2 when standard input is not a socket.
pub fn main() -> ExitCode {
    inheritance::end_here();
    // The tree must not lose its owner to a signal meant for something else. The program that is
    // spawned gets an empty mask again (`set_up_leader`).
    let mut shielded = SigSet::empty();
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        shielded.add(signal);
    }
    let _ = shielded.thread_block();

    let Ok(socket) = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
    else {
        return ExitCode::from(2);
    };
    if socket.peer_addr().is_err() {
        return ExitCode::from(2);
    }
    let Ok(reading_end) = socket.try_clone() else {
        return ExitCode::from(3);
    };
    let (sender, receiver) = mpsc::channel();
    let orders = sender.clone();
    thread::spawn(move || listen(reading_end, &orders));
    run(Channel { socket }, sender, &receiver);
    ExitCode::SUCCESS
}

fn run(mut channel: Channel, sender: Sender<Event>, events: &Receiver<Event>) {
    let Ok(Event::Order(Order::Prepare(job))) = events.recv() else {
        return;
    };
    if let Err(failure) = supervisor::check(&job) {
        channel.report(&Notice::Failed(failure));
        return;
    }
    channel.report(&Notice::Ready);
    let Ok(Event::Order(Order::Go)) = events.recv() else {
        return;
    };
    match Supervisor::start(&job, &mut channel, sender) {
        Ok(supervisor) => supervisor.run(&mut channel, events),
        Err(failure) => channel.report(&Notice::Failed(failure)),
    }
}

fn listen(socket: UnixStream, events: &Sender<Event>) {
    for line in BufReader::new(socket).split(b'\n') {
        let Some(order) = line
            .ok()
            .and_then(|line| serde_json::from_slice(&line).ok())
        else {
            break;
        };
        if events.send(Event::Order(order)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::OwnerGone);
}

/// The way back to flashrig.
struct Channel {
    socket: UnixStream,
}

impl Channel {
    fn report(&mut self, notice: &Notice) {
        if let Ok(mut line) = serde_json::to_vec(notice) {
            line.push(b'\n');
            // When flashrig is gone, the listener notices; nothing can be reported then.
            let _ = self.socket.write_all(&line);
        }
    }
}
