//! Who answers: models, version, context length, as far as the server tells.

use std::time::Duration;

use serde_json::Value;

use flashrig_http::{Answer, HttpError, TurnedAway, Upstream, ask};

const LIMIT: Duration = Duration::from_secs(10);

/// What a server tells of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// Version.
    pub version: Option<String>,
    /// Whether it says that it is simulated.
    pub simulated: bool,
    /// The time factor that a simulated one tells.
    pub speed: Option<f64>,
    /// Model names.
    pub models: Option<Vec<String>>,
    /// Context length of the model asked for, or of the only one, in tokens.
    pub context: Option<u64>,
    /// Quantization of that model.
    pub quantization: Option<String>,
}

/// Asks the server who it is. `model` is the one that will be asked for.
///
/// # Errors
/// No server, or something that is not an LLM server.
pub async fn identify(server: &Upstream, model: Option<&str>) -> Result<Identity, HttpError> {
    const MODELS: &str = "/v1/models";
    let answer = ask(server, MODELS, None, LIMIT).await?;
    let models = model_list(&server.url_of(MODELS), &answer)?;
    let get = async |path: &str| {
        let answer = ask(server, path, None, LIMIT).await;
        answer.ok().and_then(ok_json)
    };
    let props = get("/props").await;
    let versions = [get("/version").await, get("/api/version").await];
    let reported = versions.iter().flatten();
    Ok(Identity::learned(
        models.as_ref(),
        props.as_ref(),
        reported,
        model,
    ))
}

/// The model list in an answer; `None` when the server has none.
///
/// # Errors
/// It is not an LLM server, or it wants a key.
pub fn model_list(url: &str, answer: &Answer) -> Result<Option<Value>, HttpError> {
    let broken = |why: String| HttpError::Broken {
        url: url.to_owned(),
        why,
    };
    let message = answer.label();
    match (answer.status, answer.json()) {
        (200, None) => Err(broken(format!(
            "it is not JSON, so this is hardly an LLM server: {message}"
        ))),
        (200, list) => Ok(list),
        (status @ (401 | 403), _) => Err(HttpError::TurnedAway {
            url: url.to_owned(),
            status,
            message,
            wants: answer
                .turned_away
                .clone()
                .unwrap_or(TurnedAway::WantsKey { given: false }),
        }),
        _ => Ok(None),
    }
}

impl Identity {
    /// What these answers tell: the model list, the properties, and those of the routes for the
    /// version. `model` is the one that will be asked for.
    pub fn learned<'v>(
        models: Option<&Value>,
        props: Option<&Value>,
        versions: impl Iterator<Item = &'v Value> + Clone,
        model: Option<&str>,
    ) -> Self {
        let simulated = versions
            .clone()
            .any(|v| v.get("simulated").and_then(Value::as_bool) == Some(true));
        let speed = versions
            .clone()
            .find_map(|v| v.get("speed")?.as_f64())
            .filter(|speed| simulated && *speed > 0.0);
        let version = versions.clone().find_map(|v| text_at(v, "/version"));
        Self {
            simulated,
            speed,
            // llama.cpp as a library says "b0-unknown", which is no version.
            version: version.or_else(|| {
                text_at(props?, "/build_info").filter(|build| !build.contains("unknown"))
            }),
            context: models
                .and_then(|m| context_of(m, model))
                .or_else(|| props_context(props?)),
            quantization: models
                .and_then(|list| quantization_of(entry(list, model)?))
                .or_else(|| of_file(&text_at(props?, "/model_path")?)),
            models: models.and_then(model_names),
        }
    }
}

fn ok_json(answer: Answer) -> Option<Value> {
    (answer.status == 200).then(|| answer.json()).flatten()
}

fn text_at(value: &Value, pointer: &str) -> Option<String> {
    value
        .pointer(pointer)?
        .as_str()
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
}

fn model_names(list: &Value) -> Option<Vec<String>> {
    let data = list.get("data")?.as_array()?;
    Some(data.iter().filter_map(|m| text_at(m, "/id")).collect())
}

/// Context length under the names that servers use: vLLM `max_model_len`, mlx-serve and others
/// `context_length`, llama.cpp `meta.n_ctx`. Training lengths are not what a server was started
/// with, and are not taken.
fn context_of(list: &Value, model: Option<&str>) -> Option<u64> {
    let entry = entry(list, model)?;
    [
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/meta/n_ctx",
    ]
    .iter()
    .find_map(|p| entry.pointer(p)?.as_u64())
    .filter(|n| *n > 0)
}

/// The list's entry of a model, or the only one.
fn entry<'v>(list: &'v Value, model: Option<&str>) -> Option<&'v Value> {
    let data = list.get("data")?.as_array()?;
    match model {
        Some(name) => {
            let is_it = |m: &&Value| m.get("id").and_then(Value::as_str) == Some(name);
            data.iter().find(is_it)
        }
        None => data.first().filter(|_| data.len() == 1),
    }
}

/// Quantization in a model's entry: a word, a number of bits, or a table with one.
fn quantization_of(entry: &Value) -> Option<String> {
    let reported = ["/quantization", "/meta/quantization", "/meta/ftype"];
    reported
        .iter()
        .find_map(|pointer| match entry.pointer(pointer)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(bits) => Some(format!("{bits} bits")),
            Value::Object(table) => Some(format!("{} bits", table.get("bits")?.as_u64()?)),
            _ => None,
        })
}

/// Quantization in the name of a model's file, such as `m-Q4_K_M.gguf`.
fn of_file(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?.strip_suffix(".gguf")?;
    let last = name.rsplit(['-', '.']).next()?;
    let upper = last.to_ascii_uppercase();
    let after = upper.strip_prefix('I').unwrap_or(&upper);
    let of_bits = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let is_one = after.strip_prefix('Q').is_some_and(of_bits)
        || matches!(upper.as_str(), "F16" | "BF16" | "F32" | "FP16" | "MXFP4");
    is_one.then(|| last.to_owned())
}

/// llama.cpp: the length of one slot.
fn props_context(props: &Value) -> Option<u64> {
    props
        .pointer("/default_generation_settings/n_ctx")?
        .as_u64()
        .filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn context_is_read_under_each_servers_name_and_never_from_training() {
        let list = |entry: Value| json!({"data": [entry]});
        assert_eq!(
            context_of(&list(json!({"id": "m", "max_model_len": 8192})), Some("m")),
            Some(8192)
        );
        assert_eq!(
            context_of(&list(json!({"id": "m", "context_length": 4096})), None),
            Some(4096)
        );
        assert_eq!(
            context_of(&list(json!({"id": "m", "meta": {"n_ctx_train": 9}})), None),
            None
        );
        assert_eq!(
            context_of(&list(json!({"id": "m", "max_model_len": 8192})), Some("x")),
            None
        );
    }

    #[test]
    fn quantization_is_told_by_the_list_or_by_the_name_of_the_models_file() {
        let of = |entry: Value| quantization_of(&entry);
        assert_eq!(of(json!({"quantization": "4bit"})).as_deref(), Some("4bit"));
        assert_eq!(
            of(json!({"quantization": {"bits": 8}})).as_deref(),
            Some("8 bits")
        );
        assert_eq!(of(json!({"quantization": null})), None);
        for (path, reported) in [
            ("/m/SmolLM2-135M-Instruct.Q4_1.gguf", Some("Q4_1")),
            ("m-IQ2_XXS.gguf", Some("IQ2_XXS")),
            ("m-f16.gguf", Some("f16")),
            ("/m/model.gguf", None),
            ("Qwen3-4B.gguf", None),
            ("/m/Q4_1", None),
        ] {
            assert_eq!(of_file(path).as_deref(), reported, "{path}");
        }
    }

    #[test]
    fn a_build_that_says_unknown_is_no_version() {
        let version = |build: &str| {
            let props = json!({"build_info": build});
            Identity::learned(None, Some(&props), [].iter(), None).version
        };
        assert_eq!(version("b0-unknown"), None);
        assert_eq!(version("b11434-a1b2c3d"), Some("b11434-a1b2c3d".into()));
    }

    #[test]
    fn a_list_of_several_models_tells_no_context_without_a_name() {
        let list =
            json!({"data": [{"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2}]});
        assert_eq!(context_of(&list, None), None);
        assert_eq!(context_of(&list, Some("b")), Some(2));
        assert_eq!(model_names(&list), Some(vec!["a".into(), "b".into()]));
    }
}
