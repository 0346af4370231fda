//! The gateway's own answers, in the form the client's dialect gives to errors, so that agents
//! show the words instead of failing to read them.

use bytes::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::Response;
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::auth::Access;
use super::body::GatewayBody;
use super::refusal::Reason;
use super::registry::Page;
use flashrig_record::Dialect;

/// One of the gateway's own pages, to those who may read it.
pub(super) fn page(method: &Method, page: Page, access: Access) -> Response<GatewayBody> {
    let own = |status, content_type, text: String| {
        let mut response = Response::new(GatewayBody::own(Bytes::from(text)));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    };
    const PLAIN: &str = "text/plain; charset=utf-8";
    if !matches!(*method, Method::GET | Method::HEAD) {
        let message = "this page is the gateway's own; read it with GET\n".to_owned();
        let mut response = own(StatusCode::METHOD_NOT_ALLOWED, PLAIN, message);
        let headers = response.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        // A body that may have come along is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    if let Access::CrossOrigin(message) = access {
        return own(StatusCode::FORBIDDEN, PLAIN, message + "\n");
    }
    if matches!(access, Access::TokenNeeded) {
        let message = "send a client's token as `authorization: Bearer`\n".to_owned();
        let mut response = own(StatusCode::UNAUTHORIZED, PLAIN, message);
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    own(StatusCode::OK, page.content_type, page.text)
}

/// The answer and its body's length in bytes.
pub(super) fn reply(
    dialect: Dialect,
    reason: Reason,
    message: &str,
) -> (Response<GatewayBody>, u64) {
    let body = match dialect {
        Dialect::AnthropicMessages | Dialect::AnthropicCountTokens => serde_json::json!({
            "type": "error",
            "error": {"type": reason.anthropic_type(), "message": message},
        }),
        Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::Models | Dialect::Other => {
            serde_json::json!({
                "error": {
                    "message": message,
                    "type": reason.openai_type(),
                    "param": null,
                    "code": reason.code(),
                },
            })
        }
    };
    let (mut response, length) = json(reason.status(), &body);
    if matches!(
        reason,
        Reason::TooLarge | Reason::BadRequest | Reason::SlowBody | Reason::Busy
    ) {
        // The rest of the request may never be read, so the connection cannot be used again.
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    (response, length)
}

/// A body of JSON as an answer, and its length in bytes.
pub(super) fn json(status: StatusCode, body: &Value) -> (Response<GatewayBody>, u64) {
    let bytes = Bytes::from(body.to_string());
    let length = bytes.len() as u64;
    let mut response = Response::new(GatewayBody::own(bytes));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (response, length)
}
