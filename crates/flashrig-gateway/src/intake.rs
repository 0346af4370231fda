//! A request's body on its way in: read whole, and bounded.

use std::error::Error as _;
use std::io;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::refusal::{Reason, Refusal};
use super::request_log::Recording;
use flashrig_http::describe;
use flashrig_record::Outcome;

/// Reads the body.
pub(super) async fn read_body(
    body: &mut Incoming,
    limit: u64,
    recording: &mut Recording,
) -> Result<Vec<u8>, Refusal> {
    let expected = body.size_hint().lower().min(limit).min(1024 * 1024);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| body_fault(&error))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        recording.attempt.request_bytes += data.len() as u64;
        if recording.attempt.request_bytes > limit {
            drop(bytes);
            discard(body, limit, recording).await;
            return Err(Refusal::rejected(
                Reason::TooLarge,
                format!("the request's body is above the gateway's limit of {limit} bytes"),
            ));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

fn body_fault(error: &hyper::Error) -> Refusal {
    let message = format!("the request's body broke off: {}", describe(error));
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    // What cannot be read as HTTP is the client's fault; anything else is its leaving.
    let malformed = source.is_some_and(|source| {
        matches!(
            source.kind(),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
        )
    });
    let end = if malformed {
        Outcome::RejectedByGateway
    } else {
        Outcome::ClientAborted
    };
    Refusal {
        reason: Reason::BadRequest,
        message,
        end,
    }
}

/// Reads on for at most `limit` bytes without keeping them: a client that is still sending when
/// its connection closes would never see the answer.
pub(super) async fn discard(body: &mut Incoming, limit: u64, recording: &mut Recording) {
    let mut left = limit;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, |data| data.len() as u64);
        recording.attempt.request_bytes += read;
        match left.checked_sub(read) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
