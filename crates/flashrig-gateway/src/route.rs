//! Dialect from the path, role from the structure. No agent's or version's words are looked for.

use hyper::Method;

use flashrig_record::{Attempt, Dialect, Role};

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

/// The role that the structure of a request suggests: an agent's own thread offers tools, its
/// helpers do not.
pub(super) fn role(dialect: Dialect, tools: Option<u32>) -> Role {
    match (dialect.generates(), tools) {
        (false, _) => Role::Probe,
        (true, Some(1..)) => Role::Main,
        (true, _) => Role::Side,
    }
}

/// Settles the roles of one session once all its attempts are known: an agent that never offers
/// tools has a thread all the same, so without any main request the generation requests are it.
pub fn settle_roles(attempts: &mut [Attempt]) {
    if attempts.iter().any(|attempt| attempt.role == Role::Main) {
        return;
    }
    for attempt in attempts
        .iter_mut()
        .filter(|attempt| attempt.role == Role::Side)
    {
        attempt.role = Role::Main;
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

    #[test]
    fn requests_with_tools_are_main_without_are_side_and_the_rest_are_probes() {
        assert_eq!(role(Dialect::OpenaiChat, Some(10)), Role::Main);
        assert_eq!(role(Dialect::OpenaiChat, Some(0)), Role::Side);
        assert_eq!(role(Dialect::AnthropicMessages, None), Role::Side);
        assert_eq!(role(Dialect::AnthropicCountTokens, Some(10)), Role::Probe);
        assert_eq!(role(Dialect::Other, None), Role::Probe);
    }
}
