//! flashrig's end of the channel to one helper: sends orders, keeps what the helper reported, and
//! kills the tree from outside when the helper no longer answers.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::ipc::{Failure, FinishedTree, Notice, Order};
use super::tree::{Identity, Tree};
use super::usage::{LeaderExit, Leftover, Reading};
use flashrig_clock::Stamp;

/// From the first KILL until the helper gives up.
pub(super) const KILL_BOUND: Duration = Duration::from_secs(3);

/// Everything the helper has reported so far.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) ready: bool,
    pub(super) failed: Option<Failure>,
    pub(super) started: Option<(u32, Stamp)>,
    pub(super) exited: Option<LeaderExit>,
    pub(super) leftovers: Vec<Leftover>,
    pub(super) reading: Option<Reading>,
    pub(super) finished: Option<FinishedTree>,
    /// The helper, and the sandbox around it, have ended.
    pub(super) closed: bool,
    /// The outer process, the sandbox's or the helper itself, exited and was not killed.
    pub(super) exited_by_itself: bool,
    members: Vec<Identity>,
}

/// The handle of one helper. Dropping it closes the channel, and the helper then kills its tree.
#[derive(Debug)]
pub(super) struct Control {
    orders: mpsc::UnboundedSender<Order>,
    view: watch::Receiver<View>,
    kill: mpsc::Sender<()>,
    outer_pid: u32,
}

impl Control {
    pub(super) fn new(socket: UnixStream, child: Child) -> Self {
        let (reading, writing) = socket.into_split();
        let (report, view) = watch::channel(View::default());
        let (kill, kills) = mpsc::channel(1);
        let (orders, to_send) = mpsc::unbounded_channel();
        let outer_pid = child.id().unwrap_or_default();
        tokio::spawn(send(writing, to_send));
        tokio::spawn(listen(reading, child, report, kills));
        Self {
            orders,
            view,
            kill,
            outer_pid,
        }
    }

    /// Sends an order. When the helper has ended, `view` shows it.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    pub(super) fn view(&self) -> watch::Ref<'_, View> {
        self.view.borrow()
    }

    /// Waits until `enough` is true of what the helper reported, or the helper has ended.
    /// May be dropped while it waits.
    pub(super) async fn until(&self, enough: impl Fn(&View) -> bool) -> View {
        let mut view = self.view.clone();
        match view.wait_for(|view| view.closed || enough(view)).await {
            Ok(view) => view.clone(),
            // The listener sets `closed` before it ends, unless the runtime is being shut down.
            Err(_) => View {
                closed: true,
                ..self.view.borrow().clone()
            },
        }
    }

    /// The same, until `deadline` at most; `None` when it passed.
    pub(super) async fn until_at(
        &self,
        deadline: Instant,
        enough: impl Fn(&View) -> bool,
    ) -> Option<View> {
        timeout_at(deadline, self.until(enough)).await.ok()
    }

    /// Ends a tree whose helper does not: kills what can be found from outside, then the helper.
    /// `namespaced` says that the helper's own pids mean nothing here. Returns the survivors.
    pub(super) async fn force(&self, namespaced: bool, bound: Duration) -> Vec<Leftover> {
        let mut tree = Tree::below(self.outer_pid);
        if !namespaced {
            tree.remember(&self.view().members);
        }
        let deadline = Instant::now() + bound;
        let mut ever_seen: HashMap<u32, Identity> = HashMap::new();
        loop {
            // A pid that was waited for may belong to someone else by now.
            let closed = self.view().closed;
            if closed {
                tree.forget_root();
            }
            let members = tree.look();
            ever_seen.extend(members.iter().map(|m| (m.pid, *m)));
            for member in &members {
                member.signal(Signal::SIGKILL);
            }
            if members.is_empty() {
                if closed {
                    return Vec::new();
                }
                let _ = self.kill.try_send(());
            }
            if Instant::now() >= deadline {
                let _ = self.kill.try_send(());
                return ever_seen
                    .values()
                    .filter_map(|member| member.describe())
                    .collect();
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn send(mut writing: OwnedWriteHalf, mut orders: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        let Ok(mut line) = serde_json::to_vec(&order) else {
            continue;
        };
        line.push(b'\n');
        if writing.write_all(&line).await.is_err() {
            break;
        }
    }
    // Dropping this half closes the channel in the helper's direction.
}

async fn listen(
    reading: OwnedReadHalf,
    mut child: Child,
    report: watch::Sender<View>,
    mut kills: mpsc::Receiver<()>,
) {
    let mut lines = BufReader::new(reading).split(b'\n');
    loop {
        tokio::select! {
            line = lines.next_segment() => match notice(line) {
                Some(notice) => report.send_modify(|view| view.take(notice)),
                None => break,
            },
            Some(()) = kills.recv() => {
                let _ = child.start_kill();
            }
        }
    }
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            Some(()) = kills.recv() => {
                let _ = child.start_kill();
            }
        }
    };
    report.send_modify(|view| {
        view.exited_by_itself = status.is_ok_and(|status| status.code().is_some());
        view.closed = true;
    });
}

/// An unreadable line is treated like a closed channel: such a helper cannot be trusted.
fn notice(line: io::Result<Option<Vec<u8>>>) -> Option<Notice> {
    serde_json::from_slice(&line.ok()??).ok()
}

impl View {
    fn take(&mut self, notice: Notice) {
        match notice {
            Notice::Ready => self.ready = true,
            Notice::Failed(failure) => self.failed = Some(failure),
            Notice::Started { pid, stamp } => self.started = Some((pid, stamp)),
            Notice::Usage { reading, members } => {
                self.reading = Some(reading);
                self.members = members;
            }
            Notice::Exited(exit) => self.exited = Some(exit),
            Notice::Leftovers(left) => self.leftovers = left,
            Notice::Finished(finished) => self.finished = Some(finished),
        }
    }
}
