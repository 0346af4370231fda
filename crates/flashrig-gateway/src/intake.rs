//! A request's body on its way in: read whole, and bounded in bytes and time.

use std::error::Error as _;
use std::future::pending;
use std::io;

use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::body_budget::HeldBytes;
use super::limits::Limits;
use super::refusal::{Reason, Refusal};
use super::request_log::Recording;
use flashrig_http::describe;
use flashrig_record::Outcome;

/// Reads the body. Its bytes are taken off the budget of `held`.
pub(super) async fn read_body(
    body: &mut Incoming,
    limits: &Limits,
    held: &mut HeldBytes,
    recording: &mut Recording,
) -> Result<Vec<u8>, Refusal> {
    let limit = limits.body_bytes;
    let expected = body.size_hint().lower().min(limit).min(1024 * 1024);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    let deadline = limits.body_time.map(|time| Instant::now() + time);
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = until(deadline) => return Err(slow(limits)),
        };
        let Some(frame) = frame else {
            return Ok(bytes);
        };
        let frame = frame.map_err(|error| body_fault(&error))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let length = data.len() as u64;
        recording.attempt.request_bytes += length;
        let refusal = if recording.attempt.request_bytes > limit {
            Refusal::rejected(
                Reason::TooLarge,
                format!("the request's body is above the gateway's limit of {limit} bytes"),
            )
        } else if !held.take(length) {
            Refusal::rejected(
                Reason::Busy,
                "the gateway holds too many requests; send it again later",
            )
        } else {
            bytes.extend_from_slice(data);
            continue;
        };
        drop(bytes);
        discard(body, limits, recording).await;
        return Err(refusal);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

fn slow(limits: &Limits) -> Refusal {
    let seconds = limits.body_time.unwrap_or_default().as_secs_f64();
    Refusal::rejected(
        Reason::SlowBody,
        format!("the request's body was not whole {seconds} s after its head"),
    )
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

/// Reads on for a while without keeping anything: a client that is still sending when its
/// connection closes would never see the answer.
pub(super) async fn discard(body: &mut Incoming, limits: &Limits, recording: &mut Recording) {
    let deadline = Instant::now() + limits.discard_time;
    let mut left = limits.body_bytes;
    while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
        let read = frame.data_ref().map_or(0, |data| data.len() as u64);
        recording.attempt.request_bytes += read;
        match left.checked_sub(read) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
