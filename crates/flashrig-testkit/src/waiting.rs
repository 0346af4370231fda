//! Tests wait for a condition, never for a time.

use std::time::{Duration, Instant};

/// How long a test waits for something that should happen soon, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` finds what is wanted.
///
/// # Panics
/// It finds nothing within [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// It does not hold within [`PATIENCE`].
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// The output of a future that is ready soon.
///
/// # Panics
/// It is not ready within [`PATIENCE`].
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.expect("it should have happened long ago")
}
