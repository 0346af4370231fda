//! Ports on loopback.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A port that nobody listens on at this moment.
///
/// # Errors
/// The system has none.
pub(super) fn free() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// Whether nobody listens there at this moment.
pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
