//! What agents leave behind: cases B1 and B3.

use crate::pair::agent::PLAY;
use crate::pair::stage::{Agent, Stage, TASK, number, sandboxes, text};

#[test]
fn a_background_child_that_holds_stdout_does_not_keep_the_session_and_is_listed_and_ended() {
    for sandbox in sandboxes() {
        let stage = Stage::new();
        stage.agent(&Agent {
            steps: &[
                "ask",
                "write greeting.txt hello",
                "sh sleep 631 &",
                "result",
            ],
            end_required: true,
            ..Agent::default()
        });
        let ran = stage.pair(&["--sandbox", sandbox]);
        for session in ran.both("completed") {
            let leftovers = session["leftovers"].to_string();
            assert!(leftovers.contains("sleep 631"), "{sandbox}: {session:#}");
            assert_eq!(session["exit"]["value"], 0);
            assert!(number(&session, "wall_s") < 60.0);
        }
        assert_eq!(ran.functional(), "pass", "{ran:#?}");
    }
}

#[test]
fn nothing_that_left_the_process_group_and_ignores_term_survives_until_verification() {
    for sandbox in sandboxes() {
        let stage = Stage::with(&[
            "ask",
            "write greeting.txt hello",
            "leave-listener port.txt",
            "result",
        ]);
        let me = std::env::current_exe().unwrap();
        // The check itself finds out that nobody listens there any more.
        let check = format!(
            "\n[[checks]]\nname = \"port\"\nrun = \"'{}' {} 'port-free port.txt'\"\n\
             time_limit = \"1m\"\nbefore = \"fail\"\nmust_print = 'port is free'\n",
            me.display(),
            PLAY.join(" ")
        );
        stage.write("tasks/tiny/task.toml", &format!("{TASK}{check}"));
        let ran = stage.pair(&["--sandbox", sandbox]);
        for session in ran.both("completed") {
            let port = session["checks"]
                .as_array()
                .unwrap()
                .iter()
                .find(|c| c["name"] == "port")
                .unwrap();
            assert_eq!(port["outcome"], "passed", "{sandbox}: {port:#}");
            let tail = text(port, "output_tail");
            assert!(tail.contains("port is free"), "{tail}");
            let leftovers = session["leftovers"].to_string();
            assert!(leftovers.contains("listen port.txt"), "{session:#}");
        }
        assert_eq!(ran.functional(), "pass", "{ran:#?}");
    }
}
