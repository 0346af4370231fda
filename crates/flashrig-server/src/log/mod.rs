//! The log of a server, line by line.
//!
//! | file | its one job |
//! |---|---|
//! | `pattern` | what a line means, by the patterns of a profile |
//! | `index` | what the log has said so far: its last lines, and the lines that mean something |
//! | `writer` | keeps the log as `server.log` |
//! | `tailer` | reads the file that an attached server logs to |

mod index;
mod pattern;
mod tailer;
mod writer;

pub(crate) use index::speaks_of_a_fault;
pub use index::{LogEntry, LogIndex};
pub use pattern::{LogEvent, LogEventKind, LogPattern, LogReader, RawLogPattern, events};
pub use tailer::FollowError;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use tailer::{EVERY, LogTailer};
pub use writer::Keeping;
pub(crate) use writer::open_whole_lines;
