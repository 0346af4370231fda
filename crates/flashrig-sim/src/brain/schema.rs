//! Values that satisfy a JSON Schema well enough to be accepted: for required arguments that a
//! walkthrough says nothing about, and for structured side answers.

use serde_json::{Map, Value, json};

/// A value of `schema`; strings are `text`.
pub fn fill(schema: &Value, text: &str) -> Value {
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    if let Some(first) = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|values| values.first())
    {
        return first.clone();
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = schema
            .get(key)
            .and_then(Value::as_array)
            .and_then(|choices| choices.first())
        {
            return fill(first, text);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(Value::String(kind)) => Some(kind.as_str()),
        _ => None,
    };
    match kind {
        Some("boolean") => json!(false),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        Some("object") => {
            let mut object = Map::new();
            for name in schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                if let Some(name) = name.as_str() {
                    let property = schema
                        .get("properties")
                        .and_then(|p| p.get(name))
                        .unwrap_or(&Value::Null);
                    object.insert(name.to_owned(), fill(property, text));
                }
            }
            Value::Object(object)
        }
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_properties_get_values_of_their_types_and_others_none() {
        let schema = json!({"type": "object", "required": ["title", "ok", "n", "kind"], "properties": {
            "title": {"type": "string"}, "ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 3},
            "kind": {"enum": ["a", "b"]}, "optional": {"type": "string"},
        }});
        assert_eq!(
            fill(&schema, "t"),
            json!({"title": "t", "ok": false, "n": 3, "kind": "a"})
        );
    }
}
