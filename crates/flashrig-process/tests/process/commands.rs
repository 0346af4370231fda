//! Checks and probes: one command each, bounded in time, nothing left behind.

use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Stage, sandboxes};
use flashrig_process::{
    CommandExit, Output, Sandbox, SandboxChoice, SandboxError, ShortError, find_program,
    probe_version, run_command,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_returns_its_exit_code_and_its_output_in_order() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec = stage.script("echo one; echo two >&2; echo three; exit 9");
        spec.output = Output::Merged {
            file: Some(stage.path("log")),
        };
        let outcome = run_command(spec, PATIENCE).await;
        assert!(
            matches!(outcome.exit, CommandExit::Exited(9)),
            "{sandbox:?}: {outcome:?}"
        );
        assert!(!outcome.is_success());
        assert_eq!(outcome.output, "one\ntwo\nthree\n");
        assert!(!outcome.output_cut);
        assert_eq!(stage.text("log"), "one\ntwo\nthree\n");
        assert!(outcome.duration > Duration::ZERO);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_is_killed_with_its_tree() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let before = Instant::now();
        let outcome = run_command(
            stage.script("trap '' TERM; setsid sleep 600 & echo begun; sleep 600"),
            Duration::from_millis(500),
        )
        .await;
        assert!(
            matches!(outcome.exit, CommandExit::TimedOut),
            "{sandbox:?}: {outcome:?}"
        );
        assert_eq!(outcome.output, "begun\n");
        assert!(before.elapsed() < PATIENCE);
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_long_output_the_end_is_kept() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let outcome = run_command(
        stage.script("i=0; yes filler | head -n 100000; echo verdict"),
        PATIENCE,
    )
    .await;
    assert!(outcome.output.ends_with("filler\nverdict\n"));
    assert!(outcome.output.len() < 100_000);
    assert!(outcome.output_cut);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_missing_is_not_a_command_that_fails() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let outcome = run_command(stage.program(&stage.path("nothing")), PATIENCE).await;
    assert!(
        matches!(outcome.exit, CommandExit::NotStarted(_)),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_found_in_the_path_that_is_given_and_only_if_executable() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    std::fs::write(stage.path("sh"), "no program").unwrap();
    let path = std::env::join_paths([stage.dir.path(), "/bin".as_ref()]).unwrap();
    assert_eq!(find_program("sh", &path), Some("/bin/sh".into()));
    assert_eq!(find_program("sh", stage.dir.path()), None);
    assert_eq!(find_program("no-such-program", &path), None);
    assert_eq!(find_program("/bin/sh", ""), Some("/bin/sh".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_the_first_line_printed() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let spec =
        stage.script("test \"$1\" = --version || exit 3; echo; echo \"agent $NUMBER\"; echo more");
    let env = [("NUMBER".into(), "1.2.3".into())];
    assert_eq!(
        probe_version(&spec.program, &["--version".into()], &env, PATIENCE)
            .await
            .unwrap(),
        "agent 1.2.3"
    );
    let error = probe_version(&spec.program, &[], &env, PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, ShortError::Failed { .. }), "{error}");
    let error = probe_version(&stage.path("nothing"), &[], &env, PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, ShortError::NotStarted { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_probe_that_hangs_is_killed_with_its_children() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let spec = stage.script("sleep 600 & wait");
    let before = Instant::now();
    let error = probe_version(&spec.program, &[], &spec.env, Duration::from_millis(300))
        .await
        .unwrap_err();
    assert!(matches!(error, ShortError::TimedOut { .. }), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("gave no answer within 0.3 s and was killed")
    );
    assert!(before.elapsed() < PATIENCE);
    crate::support::wait_until("nothing is left", || stage.alive().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_files_for_both_streams_writes_them_and_shows_both() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let mut spec = stage.script("echo err >&2; echo out");
    spec.output = Output::Separate {
        stdout: Some(stage.path("out")),
        stderr: Some(stage.path("err")),
    };
    let outcome = run_command(spec, PATIENCE).await;
    assert_eq!(outcome.output, "out\nerr\n");
    assert_eq!(
        (stage.text("out").as_str(), stage.text("err").as_str()),
        ("out\n", "err\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_bubblewrap_that_does_not_work_is_quoted() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let fake = stage
        .script("echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
        .program;
    std::fs::rename(fake, stage.path("bwrap")).unwrap();
    let error = Sandbox::probe_bubblewrap_in(stage.dir.path().as_os_str())
        .await
        .unwrap_err();
    assert!(matches!(error, SandboxError::Unusable { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("No permissions to create new namespace (exit code 1)"),
        "{error}"
    );
    let error = Sandbox::probe_bubblewrap_in("/nowhere".as_ref())
        .await
        .unwrap_err();
    assert!(matches!(error, SandboxError::Missing), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_the_supervisor_alone_is_used() {
    assert_eq!(
        Sandbox::detect(SandboxChoice::None).await.unwrap(),
        Sandbox::ProcessGroup
    );
    let automatic = Sandbox::detect(SandboxChoice::Auto).await.unwrap();
    match Sandbox::detect(SandboxChoice::Bubblewrap).await {
        Ok(bubblewrap) => assert_eq!(automatic, bubblewrap),
        Err(reason) => {
            assert_eq!(automatic, Sandbox::ProcessGroup);
            assert!(reason.to_string().contains("bwrap"), "{reason}");
        }
    }
}
