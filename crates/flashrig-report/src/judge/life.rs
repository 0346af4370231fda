//! What became of the server, as a reader of the figures should know.

use flashrig_clock::Seconds;
use flashrig_record::{LifeFact, LoadRun, LoadWarning, Server};

/// Each time that the server was started again: what was measured before and after is of two
/// processes. Its name, and how long it took to be ready.
pub fn restarts(server: &Server) -> impl Iterator<Item = (String, Seconds)> {
    server.life.iter().filter_map(|life| match &life.fact {
        LifeFact::Restarted {
            server,
            ready_after_s,
        } => Some((server.clone(), *ready_after_s)),
        _ => None,
    })
}

/// The same as warnings of a synthetic run.
pub fn restarted(run: &LoadRun) -> Vec<LoadWarning> {
    let again = restarts(&run.server);
    let warning = |(server, ready_after_s)| LoadWarning::ServerRestarted {
        server,
        ready_after_s,
    };
    again.map(warning).collect()
}
