//! Bad input: one clear error that names the thing and the next step, the right exit code, and
//! nothing left behind.

use std::net::TcpListener;

use crate::pair::faulty::{Answer, Faulty};
use crate::pair::stage::{GOOD, Stage, TASK, names};

const USAGE: i32 = 2;
const SURROUNDINGS: i32 = 3;

/// A stage on which all would go well but for what the test breaks.
fn sound() -> Stage {
    Stage::with(&GOOD)
}

/// Runs, and checks the code, every one of `words`, and that nothing was left behind.
fn refused(stage: &Stage, args: &[&str], code: i32, message: &[&str]) -> String {
    let ran = stage.run(args);
    assert_eq!(ran.code, Some(code), "{args:?}: {ran:#?}");
    assert_eq!(ran.stdout, "", "{args:?}");
    for word in message {
        assert!(
            ran.stderr.contains(word),
            "{args:?}: {word:?} in {}",
            ran.stderr
        );
    }
    let errors = ran.stderr.matches("error:").count();
    assert_eq!(errors, 1, "{args:?}: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(
        names(&stage.project().join("results")),
        Vec::<String>::new(),
        "{args:?}"
    );
    stage.nothing_left();
    ran.stderr
}

/// The same for a pair of the tiny task with more arguments; the error takes one line.
fn pair_refused(stage: &Stage, more: &[&str], code: i32, message: &[&str]) {
    let mut args = vec!["pair", "--quiet"];
    if !more.contains(&"--task") {
        args.extend(["--task", "tiny"]);
    }
    if !more.contains(&"--agent") {
        args.extend(["--agent", "mine"]);
    }
    args.extend(more);
    let error = refused(stage, &args, code, message);
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
}

#[test]
fn an_unknown_task_is_answered_with_the_nearest_name() {
    let args = ["--task", "tinny"];
    pair_refused(
        &sound(),
        &args,
        USAGE,
        &["\"tinny\"", "did you mean \"tiny\"?"],
    );
}

#[test]
fn an_unknown_agent_is_answered_with_the_nearest_name() {
    let message = ["\"cluade\"", "did you mean \"claude\"?"];
    pair_refused(&sound(), &["--task", "tiny@cluade"], USAGE, &message);
    pair_refused(&sound(), &["--agent", "cluade"], USAGE, &message);
}

#[test]
fn an_unknown_server_profile_is_answered_with_the_nearest_name() {
    pair_refused(
        &sound(),
        &["--server", "smi"],
        USAGE,
        &["did you mean \"sim\"?"],
    );
}

#[test]
fn invalid_toml_is_told_with_file_and_line() {
    let stage = sound();
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("fixture = \"tiny\"", "fixture = "),
    );
    refused(
        &stage,
        &["pair", "--task", "tiny", "--agent", "mine"],
        USAGE,
        &["tasks/tiny/task.toml:3:"],
    );
    let stage = sound();
    stage.write(
        "harness/agents/mine.toml",
        "schema = \"flashrig.agent/1\"\ntitle =\n",
    );
    refused(
        &stage,
        &["pair", "--task", "tiny", "--agent", "mine"],
        USAGE,
        &["harness/agents/mine.toml:2:"],
    );
}

#[test]
fn an_unknown_field_is_told_with_file_line_and_field() {
    let stage = sound();
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("time_limit = \"2m\"", "time_limt = \"2m\""),
    );
    refused(
        &stage,
        &["pair", "--task", "tiny", "--agent", "mine"],
        USAGE,
        &["tasks/tiny/task.toml:5:", "time_limt"],
    );
}

#[test]
fn a_field_whose_value_cannot_be_used_is_told_with_file_and_field() {
    let stage = sound();
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("\"2m\"", "\"two minutes\""),
    );
    pair_refused(
        &stage,
        &[],
        USAGE,
        &["tasks/tiny/task.toml", "time_limit", "two minutes"],
    );
}

#[test]
fn a_missing_fixture_is_told_by_name() {
    let stage = sound();
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("fixture = \"tiny\"", "fixture = \"tyni\""),
    );
    pair_refused(&stage, &[], USAGE, &["tyni", "tiny"]);
}

#[test]
fn a_program_that_the_task_needs_and_nobody_has_is_named() {
    let stage = sound();
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("\"grep\"]", "\"no-such-tool\"]"),
    );
    pair_refused(
        &stage,
        &[],
        SURROUNDINGS,
        &["task tiny", "\"no-such-tool\"", "install it"],
    );
}

#[test]
fn a_task_without_walkthrough_is_not_played_on_a_simulated_server() {
    let stage = sound();
    std::fs::remove_file(stage.project().join("tasks/tiny/walkthrough.toml")).unwrap();
    pair_refused(
        &stage,
        &[],
        USAGE,
        &["task tiny", "walkthrough.toml", "--server"],
    );
}

#[test]
fn a_repository_or_revision_that_does_not_exist_is_named() {
    let stage = sound();
    std::fs::create_dir(stage.project().join("own")).unwrap();
    let with = |rev: &str| {
        let source = format!("repo = \"../../own\"\nrev = \"{rev}\"");
        stage.write(
            "tasks/tiny/task.toml",
            &TASK.replace("fixture = \"tiny\"", &source),
        );
    };
    with("main");
    pair_refused(&stage, &[], USAGE, &["own", "not a git repository"]);
    git2::Repository::init(stage.project().join("own")).unwrap();
    with("v9");
    pair_refused(
        &stage,
        &[],
        USAGE,
        &["\"v9\"", "own", "name a branch, tag or commit"],
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    pair_refused(
        &sound(),
        &["--server", &url],
        SURROUNDINGS,
        &[&url, "check that the server runs"],
    );
}

#[test]
fn a_server_address_that_is_none_is_refused() {
    pair_refused(
        &sound(),
        &["--server", "ftp://localhost"],
        USAGE,
        &["ftp://localhost"],
    );
    pair_refused(&sound(), &["--server", "http://"], USAGE, &["http://"]);
}

#[test]
fn a_model_that_is_not_served_is_answered_with_those_that_are() {
    let message = ["\"flashrig-sum\"", "did you mean \"flashrig-sim\"?"];
    pair_refused(
        &sound(),
        &["--model", "flashrig-sum"],
        SURROUNDINGS,
        &message,
    );
    let server = Faulty::start(|_| Answer::Good);
    let args = ["--server", &server.url, "--model", "other"];
    pair_refused(&sound(), &args, SURROUNDINGS, &["\"other\"", "known: m"]);
}

#[test]
fn a_key_variable_that_is_not_set_is_named() {
    pair_refused(
        &sound(),
        &["--key-env", "NO_SUCH_KEY"],
        USAGE,
        &["NO_SUCH_KEY"],
    );
}

#[test]
fn a_results_folder_that_cannot_be_written_is_found_out_before_anything_runs() {
    let stage = sound();
    // Below a file: nobody can write there, root neither.
    stage.write("blocked", "");
    pair_refused(
        &stage,
        &["--results", "blocked/results"],
        SURROUNDINGS,
        &["blocked/results", "--results"],
    );
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = format!("port {}", taken.local_addr().unwrap().port());
    let message = [port.as_str(), "in use"];
    refused(
        &sound(),
        &["sim", "--listen", &address],
        SURROUNDINGS,
        &message,
    );
}

#[test]
fn numbers_and_durations_that_make_no_sense_are_usage_errors() {
    let stage = sound();
    for (args, message) in [
        (&["--rounds", "0"][..], &["--rounds", "0"][..]),
        (&["--rounds", "many"], &["--rounds", "many"]),
        (
            &["--time-limit", "90"],
            &["--time-limit", "write it like `90s`"],
        ),
        (&["--time-limit", "soon"], &["--time-limit", "`soon`"]),
        (&["--time-limit=-5s"], &["--time-limit", "-5s"]),
        (&["--time-limit", "0s"], &["--time-limit", "0s"]),
        (&["--speed", "0"], &["--speed", "0"]),
        (&["--speed=-1"], &["--speed", "-1"]),
        (&["--speed", "nan"], &["--speed"]),
        (&["--context", "lots"], &["--context", "lots"]),
        (&["--context", "0"], &["--context", "0"]),
        (&["--pass-below", "0.5"], &["--pass-below", "0.5"]),
        (&["--fail-above", "1.2"], &["--fail-above", "1.2"]),
        (&["--pass-below", "inf"], &["--pass-below", "inf"]),
        (
            &["--server", "http://127.0.0.1:9", "--speed", "2"],
            &["--speed", "real"],
        ),
        (&["--agent-command", "true"], &["--agent command"]),
        (&["--agent", "command"], &["--agent-command"]),
        (
            &["--agent", "command", "--agent-command", ""],
            &["--agent-command", "empty"],
        ),
        (
            &["--agent", "command", "--agent-command", "a 'b"],
            &["--agent-command"],
        ),
        (
            &["--agent", "command", "--agent-command", "true {promt}"],
            &["unknown placeholder \"promt\"", "did you mean \"prompt\"?"],
        ),
        (&["--sandbox", "jail"], &["--sandbox", "jail", "bubblewrap"]),
        (&["--cache", "hot"], &["--cache", "hot", "cold"]),
        (&["--task", "@mine"], &["unknown task \"\""]),
        (&["--task", "tiny@"], &["unknown agent \"\""]),
        (&["--task", ""], &["unknown task \"\""]),
    ] {
        let mut all = vec!["pair"];
        if !args.contains(&"--task") {
            all.extend(["--task", "tiny"]);
        }
        if !args.contains(&"--agent") {
            all.extend(["--agent", "mine"]);
        }
        all.extend(args);
        refused(&stage, &all, USAGE, message);
    }
}

#[test]
fn a_report_of_no_run_is_refused_by_name() {
    let stage = sound();
    refused(
        &stage,
        &["report", "nowhere"],
        USAGE,
        &["nowhere does not exist", "give the folder of a run"],
    );
    stage.write("empty/notes.txt", "");
    refused(
        &stage,
        &["report", "empty"],
        USAGE,
        &["empty is not a run", "no run.json and no events.jsonl"],
    );
    stage.write(
        "broken/run.json",
        "{\"schema\": \"flashrig.run/1\",\n \"id\": }",
    );
    refused(
        &stage,
        &["report", "broken"],
        USAGE,
        &["broken/run.json", "line 2"],
    );
    stage.write("newer/run.json", "{\"schema\": \"flashrig.run/9\"}");
    refused(&stage, &["report", "newer"], USAGE, &["flashrig.run/9"]);
}

#[test]
fn a_prompt_too_long_for_a_command_line_is_refused_before_anything_is_measured() {
    let stage = sound();
    stage.write("tasks/tiny/prompt.md", &"word ".repeat(30_000));
    pair_refused(
        &stage,
        &[],
        USAGE,
        &["task tiny", "149999 bytes", "shorten prompt.md"],
    );
}
