//! What differs between systems in how a connection to the server is kept.

use tokio::net::TcpStream;

/// Whether a connection is kept for the next request. Only where acknowledgements can be sent at
/// once; elsewhere each request has a connection of its own, which starts without delay.
pub const KEEPS_CONNECTIONS: bool = cfg!(target_os = "linux");

/// Acknowledges what has been read now instead of some 40 ms later. The system forgets it as the
/// connection goes on, hence after each read.
#[cfg(target_os = "linux")]
pub fn acknowledge_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_quickack(true) {
        tracing::trace!(%error, "cannot set TCP_QUICKACK");
    }
}

/// There is no such option here.
#[cfg(not(target_os = "linux"))]
pub fn acknowledge_at_once(_: &TcpStream) {}
