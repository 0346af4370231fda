use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// A fact for every code, made from its schema: what the compiler knows of fields is all there is.
fn sample(root: &Value, schema: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return sample(root, &root["$defs"][name]);
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(first) = schema[choice].as_array().and_then(|all| all.first()) {
            let mut value = sample(root, first);
            // Fields beside the choice belong to it.
            if let (Value::Object(value), Value::Object(more)) = (&mut value, of(root, schema)) {
                value.extend(more);
            }
            return value;
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap_or("object"),
    };
    match kind {
        "string" => json!("a"),
        "integer" => json!(3),
        "number" => json!(1.5),
        "boolean" => json!(true),
        "array" => json!([sample(root, &schema["items"])]),
        _ => of(root, schema),
    }
}

fn of(root: &Value, schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned();
    let fields = properties.unwrap_or_default().into_iter();
    fields
        .map(|(name, schema)| (name, sample(root, &schema)))
        .collect()
}

fn every_variant_is_stored_with_code_and_text<F: Fact + schemars::JsonSchema + std::fmt::Debug>() {
    let root = schemars::schema_for!(F).to_value();
    let mut codes = BTreeSet::new();
    for variant in root["oneOf"].as_array().unwrap() {
        let code = variant["properties"]["code"]["const"].as_str().unwrap();
        assert!(codes.insert(code.to_owned()), "{code} stands twice");
        let required: Vec<&str> = variant["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r.as_str().unwrap())
            .collect();
        assert!(
            required.contains(&"text"),
            "{code} has no text in its schema"
        );
        let stored = sample(&root, variant);
        let fact: F = serde_json::from_value(stored).unwrap();
        assert_eq!(fact.code(), code);
        let again = serde_json::to_value(&fact).unwrap();
        assert_eq!(again["text"], fact.to_string(), "{code}");
        assert!(!fact.to_string().is_empty(), "{code}");
        assert_eq!(serde_json::from_value::<F>(again).unwrap(), fact);
    }
    let old: F = serde_json::from_value(json!("as an older version says it")).unwrap();
    assert_eq!(
        (old.code().as_str(), old.to_string().as_str()),
        ("other", "as an older version says it")
    );
    let newer = json!({"code": "of_tomorrow", "n": 1, "text": "as a newer version says it"});
    let newer: F = serde_json::from_value(newer).unwrap();
    assert_eq!(newer.to_string(), "as a newer version says it");
    assert!(serde_json::from_value::<F>(json!({"code": "of_tomorrow"})).is_err());
}

#[test]
fn every_fact_of_every_list_is_stored_with_code_and_text_and_read_again() {
    every_variant_is_stored_with_code_and_text::<SessionDetail>();
    every_variant_is_stored_with_code_and_text::<RequestTrouble>();
    every_variant_is_stored_with_code_and_text::<SessionFailure>();
    every_variant_is_stored_with_code_and_text::<CheckDetail>();
    every_variant_is_stored_with_code_and_text::<InvalidReason>();
    every_variant_is_stored_with_code_and_text::<VerdictReason>();
    every_variant_is_stored_with_code_and_text::<Warning>();
    every_variant_is_stored_with_code_and_text::<ServerLoss>();
    every_variant_is_stored_with_code_and_text::<LifeFact>();
    every_variant_is_stored_with_code_and_text::<StoppedBecause>();
    every_variant_is_stored_with_code_and_text::<Disagreement>();
    every_variant_is_stored_with_code_and_text::<CellStopReason>();
    every_variant_is_stored_with_code_and_text::<LeftOutReason>();
    every_variant_is_stored_with_code_and_text::<CellReason>();
    every_variant_is_stored_with_code_and_text::<TtftReason>();
    every_variant_is_stored_with_code_and_text::<LoadWarning>();
    every_variant_is_stored_with_code_and_text::<UnitFailure>();
    every_variant_is_stored_with_code_and_text::<UnitFault>();
    every_variant_is_stored_with_code_and_text::<RowFault>();
    every_variant_is_stored_with_code_and_text::<ProofSource>();
    every_variant_is_stored_with_code_and_text::<SweepWarning>();
}

#[test]
fn the_table_of_codes_in_docs_is_in_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CODES.md");
    if std::env::var_os("FLASHRIG_UPDATE_DOCS").is_some() {
        std::fs::write(path, codes_table()).unwrap();
    }
    let hint = "write it anew with FLASHRIG_UPDATE_DOCS=1 cargo test -p flashrig-record codes";
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        codes_table(),
        "{hint}"
    );
}

#[test]
fn equal_facts_are_said_once_with_all_their_places() {
    let long = |prompts| InvalidReason::LongPrompts { prompts };
    let at = |session: &str, arm| Place::session(session).in_arm(arm).in_round(1);
    let (together, alone) = (crate::ArmKind::Together, crate::ArmKind::BackToBack);
    let grouped = group([
        (at("a", together), long(2)),
        (at("b", together), long(2)),
        (at("a", alone), long(2)),
        (at("c", alone), long(1)),
        (Place::default(), InvalidReason::RoundUnfinished),
    ]);
    let texts: Vec<String> = grouped.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "a (together and back to back, round 1); b (together, round 1): 2 prompts above \
             --max-prompt turned away",
            "c (back to back, round 1): 1 prompt above --max-prompt turned away",
            "the round did not finish",
        ]
    );
    let stored = serde_json::to_value(&grouped[1]).unwrap();
    assert_eq!(stored["code"], "long_prompts");
    assert_eq!(
        stored["places"],
        json!([{"session": "c", "arm": "back_to_back", "round": 1}])
    );
    assert_eq!(stored["text"], texts[1]);
    assert_eq!(
        serde_json::from_value::<Placed<InvalidReason>>(stored).unwrap(),
        grouped[1]
    );
    let old: Placed<InvalidReason> = serde_json::from_value(json!("c: gone")).unwrap();
    assert_eq!(old.to_string(), "c: gone");
}
