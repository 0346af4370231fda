//! One request: read its head and body, check it, forward it, hand the response over.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Method;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::http::{Request, Response, Version};

use super::auth::{Access, Admission, Identified};
use super::body::{GatewayBody, InFlight, Through};
use super::client_connection::ClientConnection;
use super::document::Document;
use super::gate::{GateClient, Permit};
use super::headers::{self, Credentials};
use super::intake::{discard, read_body};
use super::probe;
use super::refusal::{Reason, Refusal};
use super::reply::{self, reply};
use super::request_log::Recording;
use super::shared::Shared;
use super::{nonce, route};
use flashrig_clock::Stamp;
use flashrig_http::stamped::SocketWatch;
use flashrig_http::{Connection, SendError, Sending};
use flashrig_record::{Attempt, Dialect, GateFact, Outcome};
use llm_observe::ResponseReader;

/// What the client gets when it is not the server's answer.
enum LocalAnswer {
    Refused(Refusal),
    Probed(probe::Answer),
}

impl<R: Into<Refusal>> From<R> for LocalAnswer {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}

/// Serves one request. `client` is the connection that it came by.
///
/// The future may be dropped at any point, when the client leaves: the recording then writes its
/// row and the connection to the server closes.
pub(super) async fn serve(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    client: ClientConnection,
) -> Response<GatewayBody> {
    let head = client.socket.last_read();
    if let Some((page, access)) = shared.auth.page(request.uri(), request.headers()) {
        if page.private && matches!(access, Access::Granted) {
            client.authenticated();
        }
        return reply::page(request.method(), page, access);
    }
    let (headers, mut uri) = (request.headers(), request.uri().clone());
    let identified = shared.auth.identify(&mut uri, headers);
    *request.uri_mut() = uri;
    let dialect = route::dialect(request.method(), request.uri().path());
    let (method, path) = (request.method().as_str(), request.uri().path());
    let mut recording = identified.request_log.begin(method, path, dialect, head);
    match forward(&shared, request, &client, identified, head, &mut recording).await {
        Ok((response, connection, permit)) => {
            let client = client.socket;
            hand_over(&shared, response, connection, permit, client, recording)
        }
        Err(LocalAnswer::Refused(refusal)) => {
            recording.attempt.error = Some(refusal.reason.error(&refusal.message));
            let own = reply(dialect, refusal.reason, &refusal.message);
            answer_locally(own, refusal.end, recording)
        }
        Err(LocalAnswer::Probed(answer)) => {
            let end = match answer.error {
                None => Outcome::Complete,
                Some(_) => Outcome::Refused,
            };
            recording.attempt.answered_by_gateway = Some(answer.what);
            recording.attempt.error = answer.error;
            answer_locally(reply::json(answer.status, &answer.body), end, recording)
        }
    }
}

/// Gives the client an answer of the gateway's own, of so many bytes, and closes the row.
fn answer_locally(
    (response, length): (Response<GatewayBody>, u64),
    end: Outcome,
    mut recording: Recording,
) -> Response<GatewayBody> {
    let attempt = &mut recording.attempt;
    // Who has left gets no answer.
    if end != Outcome::ClientAborted {
        attempt.status = Some(response.status().as_u16());
        let head_only = attempt.method == Method::HEAD.as_str();
        attempt.response_bytes = if head_only { 0 } else { length };
    }
    recording.finish(end, Stamp::now());
    response
}

async fn forward(
    shared: &Shared,
    request: Request<Incoming>,
    client: &ClientConnection,
    identified: Identified,
    head: Stamp,
    recording: &mut Recording,
) -> Result<(Response<Incoming>, Connection, Option<Permit>), LocalAnswer> {
    let (mut parts, mut body) = request.into_parts();
    let dialect = recording.attempt.dialect;
    let credentials = match check_head(&parts.method, identified.admission) {
        Ok(credentials) => credentials,
        Err(refusal) => {
            discard(&mut body, &shared.limits, recording).await;
            return Err(refusal.into());
        }
    };
    if credentials == Credentials::Valid {
        client.authenticated();
        recording.admitted(head);
    }

    let announced = parts.headers.contains_key(CONTENT_LENGTH);
    let mut held = shared.body_budget.request();
    let received = read_body(&mut body, &shared.limits, &mut held, recording).await?;
    let received = Document::new(received);
    let body_at = client.socket.last_read();
    recording.body_read(body_at);
    if let Some(own) = answer_for(shared, &recording.attempt) {
        recording.learn(&received);
        return Err(own);
    }
    let body = match shared
        .nonce
        .as_deref()
        .and_then(|nonce| nonce::insert(dialect, &received, nonce))
    {
        Some(changed) => {
            recording.attempt.body_changed = true;
            Bytes::from(changed)
        }
        None => received.text().clone(),
    };
    let upstream = shared.pool.upstream();
    parts.uri = upstream
        .target(parts.uri.path(), parts.uri.query())
        .map_err(|error| {
            Refusal::rejected(
                Reason::BadRequest,
                format!("the path cannot be forwarded: {error}"),
            )
        })?;
    parts.version = Version::HTTP_11;
    let length =
        (announced || !body.is_empty() || parts.method == Method::POST).then_some(body.len());
    headers::for_server(
        &mut parts.headers,
        upstream,
        dialect,
        credentials == Credentials::Valid,
        length,
    );
    let request = Request::from_parts(parts, Full::new(body));

    let gate = identified.gate.as_ref().filter(|_| dialect.generates());
    if gate.is_some() {
        // The gate goes by the role, and a request may be sent again while it waits.
        recording.learn(&received);
    }
    let permit = pass_gate(gate, body_at, recording).await;
    let begun = Stamp::now();
    let note = |recording: &mut Recording| {
        recording.learn(&received);
        recording.started(begun, received.text());
    };
    let answer = shared
        .pool
        .send(request, shared.limits.time_limit, |step| match step {
            Sending::Sent(clocks) => {
                let connected = recording.at(clocks.connected);
                let sent = recording.at(clocks.sent);
                recording.attempt.clocks.connected_s = Some(connected);
                recording.attempt.clocks.sent_s = Some(sent);
            }
            // What is learnt from the body is learnt while the server has it.
            Sending::Waiting => note(recording),
        })
        .await;
    note(recording);
    let (response, connection) = answer?;
    if response.status().is_informational() {
        let message = format!(
            "the server answered {} to a request that asked for no such thing",
            response.status()
        );
        return Err(SendError::NoAnswer(message).into());
    }
    Ok((response, connection, permit))
}

/// What is answered here and now to a request that was read whole.
fn answer_for(shared: &Shared, attempt: &Attempt) -> Option<LocalAnswer> {
    if let Err(refusal) = check_prompt(shared, attempt) {
        return Some(refusal.into());
    }
    let (model, lengths) = (shared.answer_probes.as_ref()?, shared.prompt_cap.as_ref()?);
    probe::answer(attempt, model, lengths).map(LocalAnswer::Probed)
}

/// Whether the prompt is short enough, by its estimated length.
fn check_prompt(shared: &Shared, attempt: &Attempt) -> Result<(), Refusal> {
    let cap = shared
        .prompt_cap
        .as_ref()
        .filter(|_| attempt.dialect.generates());
    match cap.and_then(|cap| cap.exceeded(attempt.request_bytes)) {
        None => Ok(()),
        // In the words that clients look for, so that they compact instead of giving up.
        Some((tokens, limit)) => Err(Refusal::rejected(
            Reason::PromptTooLong,
            format!(
                "prompt is too long: {tokens} tokens > {limit} maximum (this model's maximum \
                 context length as set by flashrig --max-prompt; tokens estimated from {} bytes)",
                attempt.request_bytes
            ),
        )),
    }
}

/// Waits at the gate, when there is one and the request is for it.
async fn pass_gate(
    gate: Option<&GateClient>,
    body_at: Stamp,
    recording: &mut Recording,
) -> Option<Permit> {
    let Some(gate) = gate else {
        recording.attempt.clocks.permit_s = Some(recording.at(body_at));
        return None;
    };
    let turn = gate.line_up(recording.attempt.role, recording.attempt.request_bytes);
    let found = turn.found();
    // Written before the wait: a client that leaves meanwhile has stood in line.
    recording.attempt.gate = Some(found);
    if turn.is_held() {
        recording.held(Stamp::now());
    }
    let permit = turn.wait().await;
    recording.attempt.clocks.permit_s = Some(recording.at(Stamp::now()));
    recording.attempt.gate = Some(GateFact {
        overtaken: permit.overtaken(),
        ..found
    });
    Some(permit)
}

/// Whether the request may go to the server, by its head.
fn check_head(method: &Method, admission: Admission) -> Result<Credentials, Refusal> {
    if *method == Method::CONNECT {
        return Err(Refusal::rejected(
            Reason::NotAProxy,
            "this is an LLM server's address, not a proxy; set it as base URL instead",
        ));
    }
    let credentials = match admission {
        Admission::Credentials(credentials) => credentials,
        Admission::WrongName(message) => {
            return Err(Refusal::rejected(Reason::Unauthorized, message));
        }
        Admission::CrossOrigin(message) => {
            return Err(Refusal::rejected(Reason::Forbidden, message));
        }
    };
    match credentials {
        Credentials::Valid => Ok(Credentials::Valid),
        // Some agents try the address out before they send any credentials. That reaches the
        // server without its key, and a HEAD answer carries nothing.
        Credentials::Absent if *method == Method::HEAD => Ok(Credentials::Absent),
        Credentials::Absent => Err(Refusal::rejected(
            Reason::Unauthorized,
            "no token; send this gateway's token as `authorization: Bearer` or `x-api-key`",
        )),
        Credentials::Wrong => Err(Refusal::rejected(
            Reason::Unauthorized,
            "wrong token; send this gateway's token as `authorization: Bearer` or `x-api-key`",
        )),
    }
}

/// Turns the server's response into the client's, watched from here on by its body.
fn hand_over(
    shared: &Shared,
    response: Response<Incoming>,
    connection: Connection,
    permit: Option<Permit>,
    client: SocketWatch,
    mut recording: Recording,
) -> Response<GatewayBody> {
    let (mut parts, body) = response.into_parts();
    let dialect: Dialect = recording.attempt.dialect;
    let watch = ResponseReader::new(
        dialect,
        recording.attempt.stream,
        parts.status,
        &parts.headers,
    );
    recording.encoded = parts
        .headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| coding != "identity");
    let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
    let framed = chunked || parts.headers.contains_key(CONTENT_LENGTH) || body.is_end_stream();
    if chunked {
        // Of the two, the coding counts, and it is this hop's own.
        parts.headers.remove(CONTENT_LENGTH);
    }
    headers::strip_hop_by_hop(&mut parts.headers);
    let redactor = shared.pool.upstream().redactor();
    redactor.headers(&mut parts.headers);
    // Servers are told not to compress when there is a key; one that does so yet is not readable
    // here, and changing bytes would only break it.
    let mask = redactor
        .stream()
        .filter(|_| !parts.headers.contains_key(CONTENT_ENCODING));
    parts.version = Version::HTTP_11;
    recording.attempt.clocks.response_head_s = Some(recording.at(connection.last_read()));
    recording.attempt.status = Some(parts.status.as_u16());
    let pool = Arc::clone(&shared.pool);
    let in_flight = InFlight {
        recording,
        watch,
        connection,
        permit,
        prompt_cap: shared.prompt_cap.clone(),
    };
    let body = Through::new(
        body,
        in_flight,
        client,
        pool,
        framed,
        shared.limits.time_limit,
    )
    .masked(mask);
    Response::from_parts(parts, GatewayBody::Through(Box::new(body)))
}
