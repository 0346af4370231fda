//! The one thread that starts supervising helpers.
//!
//! A parent-death signal (bubblewrap's `--die-with-parent`) follows the thread that spawned, not
//! the process, and threads of an async runtime come and go. This one lives as long as flashrig.
//! Starting one helper at a time also keeps one helper's pipes out of another's hands on systems
//! where closing on exec cannot be asked for at the moment of creation.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Runs `work` on the spawning thread, inside the caller's async runtime.
pub(super) async fn on_spawning_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    static QUEUE: OnceLock<Sender<Work>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Work>();
        thread::spawn(move || receiver.into_iter().for_each(|work| work()));
        sender
    });
    let runtime = Handle::current();
    let (answer, answered) = oneshot::channel();
    let job: Work = Box::new(move || {
        let _inside = runtime.enter();
        // The caller may be gone; what was made is dropped then, and so ended.
        let _ = answer.send(work());
    });
    let ended = || io::Error::other("the spawning thread ended");
    queue.send(job).map_err(|_| ended())?;
    answered.await.map_err(|_| ended())?
}
