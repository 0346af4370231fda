//! Threads of requests: which request goes on from which, what each is to its session, and where
//! an agent's prompts stop being the same. Pure: bodies in, facts out. The gateway, files and
//! verdicts must not enter this room.
//!
//! | file | its one job |
//! |---|---|
//! | `prompt` | a request body as a server lays it out: system, tools, messages |
//! | `link` | which earlier request a request goes on from, and threads from that |
//! | `role` | main thread, sub-agent, side request, probe: provisional and settled |
//! | `prefix` | the common prefix of successive requests, and where it breaks |
//! | `session` | all of it for one session, written into its attempts |

mod link;
mod prefix;
mod prompt;
pub mod role;
mod session;

pub use prefix::common_prefix;
pub use prompt::{Pieces, Prompt};
pub use session::explain;
