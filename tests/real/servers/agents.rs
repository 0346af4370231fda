//! A real agent on a real server: the protocol holds, though the model cannot do the task.

use serde_json::Value;
use tempfile::TempDir;

use crate::servers::stage::{Real, agent, flashrig_in, one_at_a_time, short_claude};

#[test]
fn claude_code_on_llama_cpp_is_a_task_not_done_and_no_fault_of_the_rig() {
    let _turn = one_at_a_time();
    agent("claude");
    let project = TempDir::new().unwrap();
    short_claude(project.path());
    let server = Real::llama(&["-np", "1", "-c", "32768", "-t", "1"]);
    let args = ["--task", "fix-bug@short", "--rounds", "1", "--json"];
    let url = server.url();
    let args = [&["pair", "--server", &url], &args[..]].concat();
    let ran = flashrig_in(project, &args);
    // The answer is no, and not that it could not be had.
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let record = ran.json();
    assert_eq!(record["verdict"]["functional"], "fail", "{record:#}");
    let arms = record["rounds"][0]["arms"].as_array().unwrap();
    let sessions: Vec<&Value> = arms
        .iter()
        .flat_map(|arm| arm["sessions"].as_array().unwrap())
        .collect();
    assert_eq!(sessions.len(), 2, "{record:#}");
    for session in sessions {
        assert_eq!(session["status"], "agent_error", "{session:#}");
        assert_eq!(session["refusals"], 0, "{session:#}");
        assert_eq!(session["checks"][0]["outcome"], "failed", "{session:#}");
    }
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("output token maximum"), "{reasons}");
    assert!(reasons.contains("the agent changed nothing"), "{reasons}");
    let requests = ran.requests();
    assert!(requests.len() >= 4, "{requests:#?}");
    for request in &requests {
        assert_eq!(request["dialect"], "anthropic_messages", "{request:#}");
        assert_eq!(request["end"], "complete", "{request:#}");
        assert_eq!(request["output_tokens"], 32, "{request:#}");
        assert_eq!(
            request["missing_fields"],
            serde_json::json!([]),
            "{request:#}"
        );
    }
    // Turns that go on find what was read before.
    let cached = |request: &Value| request["cached_tokens"].as_u64().unwrap();
    assert!(requests.iter().any(|r| cached(r) > 1000), "{requests:#?}");
}
