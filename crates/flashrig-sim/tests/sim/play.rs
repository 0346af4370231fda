//! The simulated server plays a walkthrough through the tools of agents of different makes, and
//! recovers when tools fail.

use crate::sim_support::agent::{Agent, Make};
use crate::sim_support::*;
use flashrig_sim::Script;
use flashrig_sim::Step;
use serde_json::json;

const PROMPT: &str =
    "The program greets people with \"Helo\".\n\nFix the greeting in `src/greet.rs`.\n";

fn steps() -> Vec<Step> {
    let edit = |old: &str, new: &str| Step::Edit {
        say: Some("I correct it.".into()),
        path: "src/greet.rs".into(),
        old: old.into(),
        new: new.into(),
    };
    vec![
        Step::Say {
            text: "I begin.".into(),
        },
        Step::Search {
            say: None,
            pattern: "Helo|greet".into(),
            path: Some("src".into()),
        },
        Step::Run {
            say: Some("I see the test fail.".into()),
            command: "grep -q Hello src/greet.rs".into(),
        },
        edit(
            "\"Helo\";\n    word",
            "\"Hello\";\n    // it's right\n    word",
        ),
        edit("// it's right", "// it is 'right'"),
        Step::Write {
            say: None,
            path: "docs/it's/CHANGES.md".into(),
            content: "# Changes\n\n- \"Hello\"\n".into(),
        },
        Step::Run {
            say: None,
            command: "grep -q Hello src/greet.rs && echo passed".into(),
        },
        Step::Read {
            say: None,
            path: "docs/it's/CHANGES.md".into(),
        },
        Step::Say {
            text: "Done: the greeting is right.".into(),
        },
    ]
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(
        folder.path().join("src/greet.rs"),
        "fn greet() -> &str {\n    let word = \"Helo\";\n    word\n}\n",
    )
    .unwrap();
    folder
}

fn fix_greeting() -> Script {
    script("fix-greeting", PROMPT, steps())
}

/// Plays the walkthrough through an agent and checks the files; gives the tools used.
async fn play(make: Make) -> Vec<String> {
    let sim = start(vec![
        script("other", "Fix the greeting", vec![]),
        fix_greeting(),
    ]);
    let folder = folder();
    let mut agent = Agent::new(make, folder.path(), PROMPT);
    let end = agent.work(&sim).await;
    assert_eq!(end, "Done: the greeting is right.", "{:?}", agent.messages);
    let file = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    let fixed =
        "fn greet() -> &str {\n    let word = \"Hello\";\n    // it is 'right'\n    word\n}\n";
    assert_eq!(file("src/greet.rs"), fixed);
    assert_eq!(file("docs/it's/CHANGES.md"), "# Changes\n\n- \"Hello\"\n");
    agent.used
}

#[tokio::test]
async fn claude_is_led_through_every_step_and_reads_a_file_that_it_must_read_first() {
    let used = play(Make::Claude).await;
    assert_eq!(
        used,
        [
            "Bash", "Bash", "Edit", "Read", "Edit", "Edit", "Write", "Bash", "Read"
        ]
    );
}

#[tokio::test]
async fn opencode_is_led_through_every_step_by_its_own_tools() {
    let used = play(Make::OpenCode).await;
    assert_eq!(
        used,
        ["grep", "bash", "edit", "edit", "write", "bash", "read"]
    );
}

#[tokio::test]
async fn an_agent_with_other_names_and_more_required_arguments_is_served() {
    let used = play(Make::Qwen).await;
    assert_eq!(
        used,
        [
            "grep_search",
            "run_shell_command",
            "replace",
            "replace",
            "write_file",
            "run_shell_command",
            "read_file"
        ]
    );
}

#[tokio::test]
async fn an_agent_with_nothing_but_a_shell_is_served() {
    assert_eq!(play(Make::ShellOnly).await, ["shell"; 7]);
}

#[tokio::test]
async fn an_agent_that_renames_tool_calls_is_followed_by_their_order() {
    assert_eq!(play(Make::OwnIds).await.len(), 7);
}

#[tokio::test]
async fn an_edit_that_keeps_failing_is_made_through_the_shell() {
    let used = play(Make::BrokenEdit).await;
    let one_edit = ["edit", "read", "edit", "bash"];
    assert_eq!(
        used,
        [
            &["grep", "bash"],
            &one_edit[..],
            &one_edit[..],
            &["write", "bash", "read"]
        ]
        .concat()
    );
}

#[tokio::test]
async fn a_step_that_cannot_be_done_ends_the_session_with_the_reason() {
    let impossible = Step::Edit {
        say: None,
        path: "src/greet.rs".into(),
        old: "not there".into(),
        new: "x".into(),
    };
    let sim = start(vec![script(
        "t",
        PROMPT,
        vec![
            impossible,
            Step::Say {
                text: "Done.".into(),
            },
        ],
    )]);
    for make in [Make::Claude, Make::OpenCode, Make::ShellOnly] {
        let folder = folder();
        let mut agent = Agent::new(make, folder.path(), PROMPT);
        let end = agent.work(&sim).await;
        assert!(end.starts_with("I could not edit src/greet.rs: "), "{end}");
        assert!(agent.used.len() <= 4, "{:?}", agent.used);
    }
}

#[tokio::test]
async fn a_session_that_lost_its_history_sees_that_its_edit_is_made_and_goes_on() {
    let edit = Step::Edit {
        say: None,
        path: "src/greet.rs".into(),
        old: "Helo".into(),
        new: "Hello".into(),
    };
    let sim = start(vec![script(
        "t",
        PROMPT,
        vec![
            edit,
            Step::Say {
                text: "Done.".into(),
            },
        ],
    )]);
    for make in [Make::Claude, Make::OpenCode, Make::ShellOnly] {
        let folder = folder();
        assert_eq!(
            Agent::new(make, folder.path(), PROMPT).work(&sim).await,
            "Done."
        );
        let mut again = Agent::new(
            make,
            folder.path(),
            &format!("Summary: much was done. {PROMPT}"),
        );
        assert_eq!(again.work(&sim).await, "Done.", "{:?}", again.messages);
        let file = std::fs::read_to_string(folder.path().join("src/greet.rs")).unwrap();
        assert!(file.contains("\"Hello\""), "nothing is done twice: {file}");
    }
}

#[tokio::test]
async fn a_user_who_speaks_after_the_end_gets_the_end_again() {
    let sim = start(vec![fix_greeting()]);
    let folder = folder();
    let mut agent = Agent::new(Make::OpenCode, folder.path(), PROMPT);
    agent.work(&sim).await;
    let used = agent.used.len();
    agent
        .messages
        .push(json!({"role": "user", "content": "Continue if you have next steps."}));
    assert_eq!(agent.work(&sim).await, "Done: the greeting is right.");
    assert_eq!(agent.used.len(), used);
}
