//! A request body as a server lays its prompt out: system, then tools, then messages.
//!
//! The order is an assumption: it is what the chat templates of open models do, whichever dialect
//! the request came in. Anthropic's own service puts tools before system. Within it, every leaf
//! counts by its text, so that one string and a list with one text block are the same, as they
//! are to a server. What no template shows is left out: cache marks and signatures.
//!
//! Successive prompts share most of their pieces; they are kept once.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::Dialect;

/// Stands before every piece, as a template's own marks do.
const MARK: u8 = 0x1e;

/// Members that do not reach the prompt.
const UNSEEN: [&str; 2] = ["cache_control", "signature"];
/// Members whose value is shown as JSON, whatever is in it.
const AS_JSON: [&str; 4] = ["input_schema", "parameters", "input", "schema"];

/// A system block, a tool or a message, as text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Fields within it, each from its offset on; paths are relative to the piece.
    fields: Vec<(u32, String)>,
}

impl Piece {
    /// The field at `offset`, and the offset within it.
    pub(super) fn field(&self, offset: usize) -> (&str, u64) {
        let at = self
            .fields
            .partition_point(|(from, _)| *from as usize <= offset);
        match at.checked_sub(1).and_then(|at| self.fields.get(at)) {
            Some((from, path)) => (path, (offset - *from as usize) as u64),
            None => ("", 0),
        }
    }
}

/// Pieces that are shared by the prompts of a session.
#[derive(Debug, Default)]
pub struct Pieces(HashSet<Arc<Piece>>);

impl Pieces {
    fn share(&mut self, piece: Piece) -> Arc<Piece> {
        if let Some(known) = self.0.get(&piece) {
            return Arc::clone(known);
        }
        let piece = Arc::new(piece);
        self.0.insert(Arc::clone(&piece));
        piece
    }
}

/// A prompt.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Protocol.
    pub(super) dialect: Dialect,
    /// System blocks, each with its path.
    pub(super) system: Vec<(String, Arc<Piece>)>,
    /// Tools.
    pub(super) tools: Vec<(String, Arc<Piece>)>,
    /// Messages; without leading system messages, which are in `system`.
    pub(super) messages: Vec<(String, Arc<Piece>)>,
    /// Names of the tools.
    pub(super) tool_names: Vec<String>,
    /// Whether the model must call one given tool: the form of a question with a short answer.
    pub(super) forced_tool: bool,
    /// The output limit asked for, in tokens.
    pub(super) max_tokens: Option<u64>,
}

impl Prompt {
    /// Reads a body; `None` when it is no generation request of a known form.
    pub fn read(dialect: Dialect, body: &[u8], pieces: &mut Pieces) -> Option<Self> {
        let list = match dialect {
            Dialect::AnthropicMessages | Dialect::OpenaiChat => "messages",
            Dialect::OpenaiResponses => "input",
            Dialect::AnthropicCountTokens | Dialect::Models | Dialect::Other => return None,
        };
        let Value::Object(body) = serde_json::from_slice(body).ok()? else {
            return None;
        };
        let mut prompt = Self {
            dialect,
            system: Vec::new(),
            tools: Vec::new(),
            messages: Vec::new(),
            tool_names: Vec::new(),
            forced_tool: is_forced(body.get("tool_choice")),
            max_tokens: ["max_tokens", "max_completion_tokens", "max_output_tokens"]
                .iter()
                .find_map(|name| body.get(*name)?.as_u64()),
        };
        for name in ["system", "instructions"] {
            prompt.system.extend(listed(name, body.get(name), pieces));
        }
        prompt.tools = listed("tools", body.get("tools"), pieces);
        let tools = body.get("tools").and_then(Value::as_array);
        prompt.tool_names = tools.into_iter().flatten().filter_map(tool_name).collect();
        let items = body.get(list).and_then(Value::as_array);
        let leading = items
            .into_iter()
            .flatten()
            .take_while(|item| is_system(item))
            .count();
        prompt.messages = listed(list, body.get(list), pieces);
        let leading = leading.min(prompt.messages.len());
        prompt.system.extend(prompt.messages.drain(..leading));
        Some(prompt)
    }

    /// Every piece in the order of the prompt, each with its path.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &(String, Arc<Piece>)> {
        self.system.iter().chain(&self.tools).chain(&self.messages)
    }

    /// Bytes of the prompt as it is laid out here.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|(_, p)| p.bytes.len() as u64).sum()
    }
}

/// The elements of a list, or a single value as a list of one.
fn listed(name: &str, value: Option<&Value>, pieces: &mut Pieces) -> Vec<(String, Arc<Piece>)> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (format!("{name}[{i}]"), pieces.share(piece(item))))
            .collect(),
        Some(single) => vec![(name.to_owned(), pieces.share(piece(single)))],
    }
}

fn piece(value: &Value) -> Piece {
    let mut piece = Piece {
        bytes: vec![MARK],
        fields: Vec::new(),
    };
    match value {
        // A text block is its text, and its path needs no more than its place.
        Value::Object(map) if is_text_block(map) => leaf(map.get("text"), "", &mut piece),
        _ => walk(value, "", &mut piece),
    }
    piece
}

/// `{"type":"text","text":…}`, also without a type, and nothing else that reaches a prompt.
fn is_text_block(map: &Map<String, Value>) -> bool {
    map.contains_key("text")
        && map
            .keys()
            .all(|k| matches!(k.as_str(), "type" | "text") || UNSEEN.contains(&k.as_str()))
}

fn walk(value: &Value, path: &str, piece: &mut Piece) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{i}]"), piece);
            }
        }
        Value::Object(map) => {
            // The role opens a message, wherever the client wrote it.
            let first = map.get_key_value("role");
            let rest = map.iter().filter(|(k, _)| k.as_str() != "role");
            for (key, value) in first.into_iter().chain(rest) {
                member(key, value, path, piece);
            }
        }
        _ => leaf(Some(value), path, piece),
    }
}

fn member(key: &str, value: &Value, path: &str, piece: &mut Piece) {
    let is_text = key == "type" && value.as_str().is_some_and(|t| t.ends_with("text"));
    if UNSEEN.contains(&key) || is_text {
        return;
    }
    let path = if path.is_empty() {
        format!(".{key}")
    } else {
        format!("{path}.{key}")
    };
    if AS_JSON.contains(&key) && !value.is_string() {
        text(value.to_string().as_bytes(), &path, piece);
    } else {
        walk(value, &path, piece);
    }
}

fn leaf(value: Option<&Value>, path: &str, piece: &mut Piece) {
    match value {
        Some(Value::String(s)) => text(s.as_bytes(), path, piece),
        Some(other) => text(other.to_string().as_bytes(), path, piece),
        None => {}
    }
}

fn text(bytes: &[u8], path: &str, piece: &mut Piece) {
    let from = u32::try_from(piece.bytes.len()).unwrap_or(u32::MAX);
    piece.fields.push((from, path.to_owned()));
    piece.bytes.extend_from_slice(bytes);
}

fn is_system(message: &Value) -> bool {
    matches!(
        message.get("role").and_then(Value::as_str),
        Some("system" | "developer")
    )
}

fn tool_name(tool: &Value) -> Option<String> {
    let named = tool.get("name").or_else(|| tool.pointer("/function/name"));
    Some(named?.as_str()?.to_owned())
}

/// Anthropic: `{"type":"tool","name":…}`; OpenAI: `{"type":"function",…}`.
fn is_forced(choice: Option<&Value>) -> bool {
    let kind = choice.and_then(|c| c.get("type")).and_then(Value::as_str);
    matches!(kind, Some("tool" | "function"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(dialect: Dialect, body: &Value) -> Prompt {
        Prompt::read(dialect, body.to_string().as_bytes(), &mut Pieces::default()).unwrap()
    }

    fn laid_out(prompt: &Prompt) -> Vec<u8> {
        prompt.pieces().flat_map(|(_, p)| p.bytes.clone()).collect()
    }

    #[test]
    fn a_string_and_a_list_with_one_marked_text_block_are_the_same_prompt() {
        let plain = json!({"system": "s", "messages": [{"role": "user", "content": "hi"}]});
        let blocks = json!({
            "messages": [{"content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}], "role": "user"}],
            "system": [{"type": "text", "text": "s"}],
        });
        let d = Dialect::AnthropicMessages;
        assert_eq!(laid_out(&read(d, &plain)), laid_out(&read(d, &blocks)));
    }

    #[test]
    fn system_stands_before_tools_and_tools_before_messages_in_every_dialect() {
        let tool = json!({"type": "function", "function": {"name": "Read", "parameters": {}}});
        let chat = json!({"messages": [
            {"role": "system", "content": "SYS"}, {"role": "user", "content": "USER"}], "tools": [tool]});
        let anthropic = json!({
            "messages": [{"role": "user", "content": "USER"}],
            "tools": [{"name": "Read", "input_schema": {}}], "system": "SYS"});
        let responses = json!({
            "input": "USER", "tools": [{"type": "function", "name": "Read"}], "instructions": "SYS"});
        for (dialect, body) in [
            (Dialect::OpenaiChat, chat),
            (Dialect::AnthropicMessages, anthropic),
            (Dialect::OpenaiResponses, responses),
        ] {
            let text = String::from_utf8(laid_out(&read(dialect, &body))).unwrap();
            let at = |word: &str| text.find(word).unwrap();
            assert!(
                at("SYS") < at("Read") && at("Read") < at("USER"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn fields_are_named_by_their_path_in_the_body() {
        let body = json!({
            "system": [{"type": "text", "text": "abc"}],
            "tools": [{"name": "Read", "description": "reads", "input_schema": {"a": 1}}],
            "messages": [{"role": "user", "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "out"}]}]}],
        });
        let prompt = read(Dialect::AnthropicMessages, &body);
        let names: Vec<String> = prompt
            .pieces()
            .flat_map(|(path, p)| p.fields.iter().map(move |(_, f)| format!("{path}{f}")))
            .collect();
        assert_eq!(
            names,
            [
                "system[0]",
                "tools[0].name",
                "tools[0].description",
                "tools[0].input_schema",
                "messages[0].role",
                "messages[0].content[0].type",
                "messages[0].content[0].content[0].text",
            ]
        );
    }

    #[test]
    fn what_is_no_generation_request_has_no_prompt() {
        let mut pieces = Pieces::default();
        assert!(Prompt::read(Dialect::Models, b"{}", &mut pieces).is_none());
        assert!(Prompt::read(Dialect::OpenaiChat, b"[]", &mut pieces).is_none());
        assert!(Prompt::read(Dialect::OpenaiChat, b"{\"messages", &mut pieces).is_none());
    }
}
