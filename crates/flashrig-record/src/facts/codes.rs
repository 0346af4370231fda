//! All codes, for documents and tests: read from the schemas, which the compiler keeps true.

use std::fmt::Write as _;

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use super::*;

/// A stable code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where it stands in a record, e.g. ``Why a session does not count as done: `failures` of a
    /// session.``
    pub list: String,
    /// The code, e.g. `check_failed`.
    pub code: String,
    /// What it means.
    pub meaning: String,
    /// Its fields.
    pub fields: Vec<String>,
}

/// Every code, list by list.
pub fn codes() -> Vec<Code> {
    [
        of::<SessionDetail>(),
        of::<RequestTrouble>(),
        of::<SessionFailure>(),
        of::<CheckDetail>(),
        of::<InvalidReason>(),
        of::<VerdictReason>(),
        of::<Warning>(),
        of::<ServerLoss>(),
        of::<LifeFact>(),
        of::<StoppedBecause>(),
        of::<Disagreement>(),
        of::<CellStopReason>(),
        of::<LeftOutReason>(),
        of::<CellReason>(),
        of::<TtftReason>(),
        of::<LoadWarning>(),
        of::<UnitFailure>(),
        of::<UnitFault>(),
        of::<RowFault>(),
        of::<ProofSource>(),
        of::<SweepWarning>(),
    ]
    .concat()
}

/// The codes of one enum.
pub(super) fn of<F: JsonSchema>() -> Vec<Code> {
    let schema = schema_for!(F).to_value();
    let list = text(&schema);
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let code = |variant: &Value| {
        let properties = variant["properties"].as_object()?;
        let code = properties.get("code")?["const"].as_str()?.to_owned();
        let own = properties.keys();
        let own = own.filter(|name| !matches!(name.as_str(), "code" | "text"));
        Some(Code {
            list: list.clone(),
            code,
            meaning: text(variant),
            fields: own.cloned().collect(),
        })
    };
    variants.iter().filter_map(code).collect()
}

fn text(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All codes as a document: a table for each list.
pub fn codes_table() -> String {
    let mut out = String::from(
        "# Codes\n\nReasons, failures, warnings and the like are stored as objects: a stable `code`, \
         fields, and `text`, the sentence for people. Lists of a verdict and of a round hold \
         `places` too: the sessions, arms and rounds that a fact is about. Sentences may change at \
         any time; codes and fields do not. Records of older versions hold the bare sentence. This \
         page is made from the types.\n",
    );
    let mut list = String::new();
    for code in codes() {
        if code.list != list {
            list.clone_from(&code.list);
            let _ = write!(
                out,
                "\n{list}\n\n| code | fields | meaning |\n|---|---|---|\n"
            );
        }
        let fields: Vec<String> = code.fields.iter().map(|f| format!("`{f}`")).collect();
        let (fields, meaning) = (fields.join(", "), code.meaning);
        let _ = writeln!(out, "| `{}` | {fields} | {meaning} |", code.code);
    }
    out
}
