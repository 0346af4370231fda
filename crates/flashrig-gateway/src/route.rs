//! The dialect of a request, from its method and path.

use hyper::Method;

use flashrig_record::Dialect;

/// The protocol of a request to `path`.
pub(super) fn dialect(method: &Method, path: &str) -> Dialect {
    // Some clients take `/v1` as part of their base address, some do not.
    let route = path
        .strip_prefix("/v1")
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path);
    let route = route.trim_end_matches('/');
    if *method == Method::POST {
        match route {
            "/messages" => Dialect::AnthropicMessages,
            "/messages/count_tokens" => Dialect::AnthropicCountTokens,
            "/chat/completions" => Dialect::OpenaiChat,
            "/responses" => Dialect::OpenaiResponses,
            _ => Dialect::Other,
        }
    } else if *method == Method::GET && (route == "/models" || route.starts_with("/models/")) {
        Dialect::Models
    } else {
        Dialect::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_told_by_method_and_path() {
        let post = |path| dialect(&Method::POST, path);
        assert_eq!(post("/v1/messages"), Dialect::AnthropicMessages);
        assert_eq!(
            post("/v1/messages/count_tokens"),
            Dialect::AnthropicCountTokens
        );
        assert_eq!(post("/v1/chat/completions"), Dialect::OpenaiChat);
        assert_eq!(post("/chat/completions"), Dialect::OpenaiChat);
        assert_eq!(post("/v1/responses"), Dialect::OpenaiResponses);
        assert_eq!(post("/v1messages"), Dialect::Other);
        assert_eq!(dialect(&Method::GET, "/v1/models"), Dialect::Models);
        assert_eq!(dialect(&Method::GET, "/v1/models/qwen"), Dialect::Models);
        assert_eq!(dialect(&Method::HEAD, "/"), Dialect::Other);
        assert_eq!(dialect(&Method::GET, "/v1/messages"), Dialect::Other);
    }
}
