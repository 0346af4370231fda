//! The gateway's event loop, on a thread of its own: nothing else that flashrig does delays what
//! passes through the gateway, and no event waits for one thread to wake another. Everything that
//! takes an instant of a request runs here.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use flashrig_http::LagMeter;

/// How often the loop is tried for its lag: sessions take minutes, and the CPU is theirs.
const LAG_PERIOD: Duration = Duration::from_millis(50);

/// A running event loop. Dropping it ends whatever runs on it.
#[derive(Debug)]
pub struct EventLoop {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EventLoop {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread, or no means to wait for sockets.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn(move || {
                // An error means that the loop was dropped.
                let _ = runtime.block_on(stopped);
            })?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Does `work` on this loop. What it spawns goes on there.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.handle.spawn(work).await {
            Ok(done) => done,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            // Only dropping the loop cancels, and this borrows it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Measures this loop's lag. `tell` hears of each reading's lateness, in seconds.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub fn lag(&self, report: impl Fn(f64) + Send + 'static) -> io::Result<LagMeter> {
        let _within = self.handle.enter();
        LagMeter::start(LAG_PERIOD, report)
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the gateway's event loop panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_runs_on_the_loops_own_thread() {
        let event_loop = EventLoop::start().unwrap();
        let name = event_loop
            .run(async { std::thread::current().name().map(str::to_owned) })
            .await;
        assert_eq!(name.as_deref(), Some("gateway"));
    }

    #[tokio::test]
    async fn dropping_the_loop_ends_what_runs_on_it() {
        let event_loop = EventLoop::start().unwrap();
        let (held, gone) = oneshot::channel::<()>();
        event_loop
            .run(async move {
                tokio::spawn(async move {
                    let _held = held;
                    std::future::pending::<()>().await;
                });
            })
            .await;
        drop(event_loop);
        assert!(gone.await.is_err());
    }
}
