//! What is odd about an answer: one code for each kind.

use serde::{Deserialize, Serialize};

macro_rules! oddities {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// What is odd about an answer, though clients may bear it. Stored as its code.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum Oddity {
            $($(#[$doc])* $name,)*
            /// A code of another version.
            Other(String),
        }

        impl Oddity {
            /// Its code, in snake case. Codes do not change.
            pub fn code(&self) -> &str {
                match self {
                    $(Self::$name => $code,)*
                    Self::Other(code) => code,
                }
            }
        }

        impl From<String> for Oddity {
            fn from(code: String) -> Self {
                match code.as_str() {
                    $($code => Self::$name,)*
                    _ => Self::Other(code),
                }
            }
        }
    };
}

oddities! {
    /// Many content events came at once after a long wait: the first token's time is an upper bound,
    /// and the speed of decoding cannot be known.
    AnswerBurst = "answer_burst",
    /// The usage counts fewer generated tokens than there were content events.
    UsageLeavesTokensOut = "usage_leaves_tokens_out",
    /// The text has the markup of a tool call, and there is no tool call.
    ToolCallAsText = "tool_call_as_text",
    /// There are tool calls, and the stop reason says that there are none.
    StopContradictsToolCalls = "stop_contradicts_tool_calls",
    /// The answer is not encoded as its head says.
    AnswerNotDecoded = "answer_not_decoded",
    /// The answer was not read to its end, because it is too large once decoded.
    AnswerTooLargeDecoded = "answer_too_large_decoded",
    /// The answer has a `content-encoding` that is not known, and was not read.
    AnswerEncodingUnknown = "answer_encoding_unknown",
    /// A stream was asked for and the answer came in one piece.
    NotStreamed = "not_streamed",
    /// The arguments of a tool call are not JSON.
    ArgumentsNotJson = "tool_call_arguments_not_json",
    /// The arguments of a tool call are not text.
    ArgumentsNotText = "tool_call_arguments_not_text",
    /// Two tool calls have one id.
    DuplicateId = "tool_call_duplicate_id",
    /// A tool call has an empty id.
    EmptyId = "tool_call_empty_id",
    /// The id of a tool call changed.
    IdChanged = "tool_call_id_changed",
    /// Only the first fragment of a tool call without an index has its id.
    IdOnlyOnce = "tool_call_id_only_once",
    /// Every fragment of a tool call has its id.
    IdRepeated = "tool_call_id_repeated",
    /// The index of a tool call changed.
    IndexChanged = "tool_call_index_changed",
    /// The indices of tool calls leave one out.
    IndexGap = "tool_call_index_gap",
    /// Two tool calls have one index.
    IndexReused = "tool_call_index_reused",
    /// A fragment belongs to a tool call that was not begun.
    UnknownIndex = "tool_call_unknown_index",
    /// A tool call has no id.
    WithoutId = "tool_call_without_id",
    /// A tool call has no index.
    WithoutIndex = "tool_call_without_index",
    /// A tool call has no name.
    WithoutName = "tool_call_without_name",
    /// There are more tool calls than are kept.
    ToolCallsCut = "tool_calls_cut",
}

impl Oddity {
    /// What it means for a reader of figures or outcomes, in plain words; `None` for what only clients
    /// have to deal with.
    pub fn meaning(&self) -> Option<&'static str> {
        Some(match self {
            Self::AnswerBurst => {
                "the answer came in one burst, so its first token may be older and its speed is unknown"
            }
            Self::UsageLeavesTokensOut => "the server counts fewer tokens than it sent",
            Self::ToolCallAsText => "the server sent a tool call as plain text",
            Self::StopContradictsToolCalls => {
                "the server sent tool calls and said that there were none"
            }
            Self::NotStreamed => "a stream was asked for and the answer came in one piece",
            _ => return None,
        })
    }
}

impl From<Oddity> for String {
    fn from(oddity: Oddity) -> Self {
        oddity.code().to_owned()
    }
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl PartialEq<&str> for Oddity {
    fn eq(&self, code: &&str) -> bool {
        self.code() == *code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_code_is_read_back_and_one_of_another_version_stays_as_it_is() {
        let stored = r#"["tool_call_empty_id","not_streamed","from_the_future"]"#;
        let read: Vec<Oddity> = serde_json::from_str(stored).unwrap();
        let future = Oddity::Other("from_the_future".to_owned());
        assert_eq!(read, [Oddity::EmptyId, Oddity::NotStreamed, future]);
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }
}
