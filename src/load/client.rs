//! Many requests to one server.

use bytes::Bytes;

use super::aim::Aim;
use crate::clock::Origin;
use crate::records::{Attempt, Role};

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Whose it is, for its row.
    pub session: String,
    /// What it is to its session: main or side.
    pub role: Role,
    /// The body as it is sent.
    pub body: Bytes,
    /// Messages in it.
    pub messages: u32,
    /// The output limit in it.
    pub max_tokens: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The row; its `end` says how it ended.
    pub attempt: Attempt,
    /// The text of the answer, as far as it came.
    pub text: String,
}

/// A row, and whose it is.
#[derive(Clone, Debug)]
pub struct SessionAttempt {
    /// Session name.
    pub session: String,
    /// The row.
    pub attempt: Attempt,
}

/// The client. Clones share connections, rows and gauges.
#[derive(Clone, Debug)]
pub struct Client;

impl Client {
    /// A client of `aim`. Instants count from `origin`.
    pub fn new(aim: Aim, origin: Origin) -> Self {
        let _ = (aim, origin);
        todo!()
    }

    /// Where requests go.
    pub fn aim(&self) -> &Aim {
        todo!()
    }

    /// Sends a request and reads its answer to the end. A request that fails has an answer too,
    /// whose row says how it ended. When this future is dropped the connection is closed at once,
    /// and the row says that the client left.
    pub async fn ask(&self, ask: Ask) -> Answer {
        let _ = ask;
        todo!()
    }

    /// Takes the rows of all requests that ended since the last call, in the order of their ends.
    /// Numbers count from 1 for each session, anew after each call.
    pub fn take_rows(&self) -> Vec<SessionAttempt> {
        todo!()
    }

    /// Requests that are open now.
    pub fn in_flight(&self) -> u32 {
        todo!()
    }
}
