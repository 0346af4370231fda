//! One request, from its sending to the end of its answer.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::http::{Request, Response};
use tokio::time::{Instant, sleep_until};

use super::aim::Aim;
use super::shared::{Answer, Ask, Shared};
use flashrig_clock::Stamp;
use flashrig_http::{Connection, SendError, Sending, describe};
use flashrig_record::{Attempt, Dialect, ErrorDetail, Outcome, REDIRECTED, Role};
use llm_observe::{Close, Oddity, ResponseReader};

/// The kind of the error of an answer that is a web page.
pub(super) const HTML: &str = "html";
/// Bytes read of a web page, for its words.
const PAGE_BYTES: usize = 4096;

/// Sends `ask` and reads its answer to the end.
pub(super) async fn run(shared: &Shared, ask: Ask) -> Answer {
    let Ask {
        session,
        role,
        body,
        messages,
        max_tokens,
    } = ask;
    let begun = Stamp::now();
    let mut attempt = Attempt::begun(shared.aim.dialect.dialect(), role);
    attempt.number = shared.number(&session);
    attempt.method = "POST".to_owned();
    attempt.path = shared.aim.dialect.path().to_owned();
    attempt.model = Some(shared.aim.model.clone());
    attempt.stream = true;
    attempt.tools = Some(0);
    attempt.messages = Some(messages);
    attempt.max_tokens = Some(u64::from(max_tokens));
    attempt.request_bytes = body.len() as u64;
    attempt.clocks.head_s = shared.origin.at(begun);
    attempt.clocks.body_s = Some(attempt.clocks.head_s);
    attempt.clocks.permit_s = attempt.clocks.body_s;
    shared.opened();
    let waits = role == Role::Main;
    if waits {
        shared.waits_for_token();
    }
    let mut open = Open {
        shared,
        session,
        attempt,
        written: false,
        sent: None,
        waits,
    };
    let aim = &shared.aim;
    match post(aim, aim.dialect.path(), aim.dialect.dialect(), body) {
        Ok(request) => open.exchange(request).await,
        Err(error) => open.fail(
            Outcome::Unreachable,
            None,
            format!("no request can be made: {error}"),
        ),
    }
}

/// A request to a route of the server.
pub(super) fn post(
    aim: &Aim,
    path: &str,
    dialect: Dialect,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, String> {
    let target = aim
        .upstream
        .target(path, None)
        .map_err(|error| error.to_string())?;
    let mut request = Request::new(Full::new(body.clone()));
    *request.method_mut() = hyper::Method::POST;
    *request.uri_mut() = target;
    let headers = request.headers_mut();
    headers.insert(HOST, aim.upstream.authority());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let agent = concat!("flashrig/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if matches!(
        dialect,
        Dialect::AnthropicMessages | Dialect::AnthropicCountTokens
    ) {
        let name = HeaderName::from_static("anthropic-version");
        headers.insert(name, HeaderValue::from_static("2023-06-01"));
    }
    aim.upstream.authorize(headers, dialect);
    Ok(request)
}

/// A request that is open. Dropped before its end, it writes its row as one whose client left.
struct Open<'s> {
    shared: &'s Shared,
    session: String,
    attempt: Attempt,
    /// Whether its row is written.
    written: bool,
    sent: Option<Stamp>,
    /// Whether it is a session's, and has no token yet.
    waits: bool,
}

/// How the reading of an answer came to its end.
struct Ended {
    close: Close,
    at: Stamp,
    fault: Option<String>,
}

impl Open<'_> {
    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Answer {
        let limit = self.shared.limits.first_token;
        let (response, connection) = match tokio::time::timeout(limit, self.reach(request)).await {
            Ok(Ok(reached)) => reached,
            Ok(Err(error)) => {
                let (outcome, kind) = match error {
                    SendError::Unreachable { .. } | SendError::Tls { .. } => {
                        (Outcome::Unreachable, None)
                    }
                    SendError::Redirected(_) => (Outcome::UpstreamError, Some(REDIRECTED)),
                    SendError::NoAnswer(_) => (Outcome::UpstreamError, None),
                    SendError::Silent(_) => (Outcome::Stalled, None),
                };
                return self.fail(outcome, kind, error.to_string());
            }
            Err(_) => return self.fail(Outcome::Stalled, None, no_token_within(limit)),
        };
        let head_at = self.shared.origin.at(connection.last_read());
        self.attempt.status = Some(response.status().as_u16());
        self.attempt.clocks.response_head_s = Some(head_at);
        if response.status().is_success() && is_of(&response, b"text/html") {
            return self.page(response, connection).await;
        }
        self.read(response, connection).await
    }

    /// Finds a connection and waits for the answer's head.
    async fn reach(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        let shared = self.shared;
        let note = |step: Sending| {
            if let Sending::Sent(clocks) = step {
                self.sent = Some(clocks.sent);
                let stored = &mut self.attempt.clocks;
                stored.connected_s = Some(shared.origin.at(clocks.connected));
                stored.sent_s = Some(shared.origin.at(clocks.sent));
            }
        };
        shared.pool.send(request, None, note).await
    }

    /// Reads the answer.
    async fn read(&mut self, response: Response<Incoming>, mut connection: Connection) -> Answer {
        let in_one_piece = response.status().is_success() && is_of(&response, b"application/json");
        let (head, mut body) = response.into_parts();
        let dialect = self.shared.aim.dialect.dialect();
        let mut watch = ResponseReader::new(dialect, true, head.status, &head.headers);
        watch.keep_generated();
        let ended = self.watch(&mut body, &mut watch, &mut connection).await;
        let end = watch.close(ended.close, ended.at.reading());
        if ended.close == Close::Clean {
            drop(body);
            self.shared.pool.keep(connection);
        }
        let facts = watch.facts();
        self.attempt.observed(facts, |at| self.shared.origin.at(at));
        self.attempt.error = facts
            .error
            .clone()
            .or_else(|| ended.fault.map(|message| error(None, message)));
        if in_one_piece {
            self.attempt.oddities.push(Oddity::NotStreamed);
        }
        let generated = facts.generated.clone().unwrap_or_default();
        Answer {
            attempt: self.close(end, ended.at),
            text: generated.visible,
            reasoning: generated.hidden,
        }
    }

    /// Reads until the body ends, or no token comes for too long. Keep-alives are no tokens.
    async fn watch(
        &mut self,
        body: &mut Incoming,
        watch: &mut ResponseReader,
        connection: &mut Connection,
    ) -> Ended {
        let limits = self.shared.limits;
        let sent = self.sent.unwrap_or_else(Stamp::now);
        let mut timer = pin!(sleep_until(
            Instant::now() + limits.first_token.saturating_sub(Stamp::now().since(sent))
        ));
        let mut body = Pin::new(body);
        std::future::poll_fn(|cx| {
            loop {
                let mut polled = body.as_mut().poll_frame(cx);
                if polled.is_pending() {
                    connection.drive(cx);
                    polled = body.as_mut().poll_frame(cx);
                }
                let at = connection.last_read();
                let ended = |close, fault| Poll::Ready(Ended { close, at, fault });
                match polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Some(data) = frame.data_ref() {
                            self.took(data, at);
                            watch.bytes(data, at.reading());
                            if self.waits && watch.facts().last_token.is_some() {
                                self.waits_no_more();
                            }
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        let message = describe(&error);
                        let message = format!("the server broke the answer off: {message}");
                        return ended(Close::Broken, Some(message));
                    }
                    Poll::Ready(None) => return ended(Close::Clean, None),
                    Poll::Pending => {
                        // The timer is moved only when it fires: tokens come far more often.
                        if timer.as_mut().poll(cx).is_pending() {
                            return Poll::Pending;
                        }
                        let now = Stamp::now();
                        let (since, limit) = match watch.facts().last_token {
                            Some(last) => (Stamp::from_reading(last), limits.silence),
                            None => (sent, limits.first_token),
                        };
                        let left = limit.saturating_sub(now.since(since));
                        if left.is_zero() {
                            let message = match watch.facts().last_token {
                                Some(_) => format!("no token for {} s", limit.as_secs_f64()),
                                None => no_token_within(limit),
                            };
                            return Poll::Ready(Ended {
                                close: Close::Silent,
                                at: now,
                                fault: Some(message),
                            });
                        }
                        timer.as_mut().reset(Instant::now() + left);
                    }
                }
            }
        })
        .await
    }

    fn waits_no_more(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.shared.waits_no_more();
        }
    }

    fn took(&mut self, data: &Bytes, at: Stamp) {
        let at = self.shared.origin.at(at);
        self.attempt.clocks.first_byte_s.get_or_insert(at);
        self.attempt.response_bytes += data.len() as u64;
    }

    /// Reads the beginning of a web page.
    async fn page(&mut self, response: Response<Incoming>, mut connection: Connection) -> Answer {
        let mut body = response.into_body();
        let mut page = Vec::new();
        let mut body = Pin::new(&mut body);
        let reading = std::future::poll_fn(|cx| {
            while page.len() < PAGE_BYTES {
                let mut polled = body.as_mut().poll_frame(cx);
                if polled.is_pending() {
                    connection.drive(cx);
                    polled = body.as_mut().poll_frame(cx);
                }
                match polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        page.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
                    }
                    Poll::Ready(_) => break,
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        });
        // What came by then is enough to be shown.
        let _ = tokio::time::timeout(self.shared.limits.first_token, reading).await;
        let text = String::from_utf8_lossy(&page);
        let message: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let message = message.chars().take(200).collect();
        self.fail(Outcome::UpstreamError, Some(HTML), message)
    }

    /// Ends a request that has no answer.
    fn fail(&mut self, end: Outcome, kind: Option<&str>, message: String) -> Answer {
        self.attempt.error = Some(error(kind, message));
        Answer {
            attempt: self.close(end, Stamp::now()),
            text: String::new(),
            reasoning: String::new(),
        }
    }

    /// Writes the row.
    fn close(&mut self, end: Outcome, at: Stamp) -> Attempt {
        self.waits_no_more();
        let attempt = &mut self.attempt;
        attempt.outcome = end;
        attempt.clocks.end_s = self.shared.origin.at(at);
        attempt.refusal = attempt.refusal_kind();
        if let Some(error) = &mut attempt.error {
            let message = std::mem::take(&mut error.message);
            error.message = self
                .shared
                .aim
                .upstream
                .redactor()
                .text(message)
                .into_owned();
        }
        let wall = self
            .sent
            .filter(|_| end == Outcome::Complete)
            .map(|sent| at.since(sent).as_secs_f64());
        self.written = true;
        let session = std::mem::take(&mut self.session);
        self.shared.closed(session, attempt.clone(), wall);
        attempt.clone()
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.written {
            self.close(Outcome::ClientAborted, Stamp::now());
        }
    }
}

fn is_of(response: &Response<Incoming>, content_type: &[u8]) -> bool {
    let value = response.headers().get(CONTENT_TYPE);
    value.is_some_and(|value| {
        let start = value.as_bytes().get(..content_type.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(content_type))
    })
}

fn no_token_within(limit: Duration) -> String {
    format!(
        "no token within {:.1} s of wall time, the limit for the first token",
        limit.as_secs_f64()
    )
}

fn error(kind: Option<&str>, message: String) -> ErrorDetail {
    ErrorDetail {
        kind: kind.map(str::to_owned),
        message,
        field: None,
    }
}
