//! HTTP/1 to an LLM server: its address and key, one connection with the instants of its socket,
//! and one small request for everything that is not measured.

mod ask;
mod lag;
mod link;
mod mask;
pub mod stamped;
mod upstream;
mod wire;

pub use ask::{Answer, HttpError, ask, send};
pub use lag::{LagMeter, Lateness};
pub use link::{Lease, Link, LinkError, SendClocks, Sending, describe};
pub use mask::{Mask, masked};
pub use upstream::{KeyStyle, Secret, Upstream, UpstreamError, X_API_KEY};
pub use wire::Wire;
