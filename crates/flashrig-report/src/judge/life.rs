//! What became of the server, as a reader of the figures should know.

use flashrig_record::{LifeKind, Server};

/// A line for each time that the server was started again: what was measured before and after is of
/// two processes.
pub fn life_lines(server: &Server) -> impl Iterator<Item = String> {
    let again = server.life.iter().filter(|l| l.what == LifeKind::Restarted);
    again.map(|life| life.message.clone())
}
