//! What the client itself did over a span of time: whether the figures are the server's.

use std::io;

use super::Client;
use crate::records::ClientHonesty;

/// Measures the client until it is finished.
#[derive(Debug)]
pub struct Meter;

impl Meter {
    /// Begins a span. `shared` says that an embedded server shares the process, whose CPU time is
    /// then not the client's.
    ///
    /// # Errors
    /// The system gives no socket or no thread.
    pub fn start(client: &Client, shared: bool) -> io::Result<Self> {
        let _ = (client, shared);
        todo!()
    }

    /// Ends it.
    pub fn finish(self) -> ClientHonesty {
        todo!()
    }
}
