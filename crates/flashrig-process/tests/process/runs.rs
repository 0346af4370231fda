//! A program runs exactly as its spec says, and its output and usage are reported in bounded memory.

use std::time::{Duration, Instant};

use crate::support::{MARK, Stage, run, sandboxes, start};
use flashrig_clock::Stamp;
use flashrig_process::{HelperFault, Output, Prepared, Sandbox, SpawnError, StreamEnd};

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_exactly_what_the_spec_gives() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec = stage.program("/usr/bin/env".as_ref());
        spec.env.push(("ODD".into(), "a=b\tc 'd'".into()));
        let (_, mut lines) = run(spec).await;
        lines.sort();
        let expected = [
            format!("{MARK}={}", stage.mark),
            "ODD=a=b\tc 'd'".into(),
            "PATH=/usr/local/bin:/usr/bin:/bin".into(),
        ];
        assert_eq!(lines, expected, "{sandbox:?}");
    }
}

/// The channel to flashrig, other sessions' pipes and transcripts are none of the agent's business.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_open_file_but_the_three_standard_ones_is_inherited() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec = stage.program("/bin/ls".as_ref());
        spec.args = vec!["/proc/self/fd".into()];
        let (_, lines) = run(spec).await;
        // The fourth is the folder being listed.
        assert_eq!(lines, ["0", "1", "2", "3"], "{sandbox:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_arrive_byte_for_byte_also_when_they_are_no_text() {
    use std::os::unix::ffi::OsStringExt;
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec = stage.script("for a; do printf '%s' \"$a\" | od -An -tx1; done");
        spec.args = vec![
            "".into(),
            "--flag x".into(),
            std::ffi::OsString::from_vec(vec![0xff, b'\n']),
        ];
        let (_, lines) = run(spec).await;
        assert_eq!(lines, [" 2d 2d 66 6c 61 67 20 78", " ff 0a"], "{sandbox:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_in_its_folder_which_has_the_same_path_inside() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let (_, lines) = run(stage.script(
            "pwd; echo written > inside; cat /proc/sys/kernel/ostype 2>/dev/null || uname",
        ))
        .await;
        assert_eq!(lines[0], stage.dir.path().to_string_lossy(), "{sandbox:?}");
        assert_eq!(stage.text("inside"), "written\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bubblewrap_hides_tmp_and_keeps_everything_but_the_named_folders_read_only() {
    let Ok(bubblewrap) = Sandbox::probe_bubblewrap().await else {
        return;
    };
    let stage = Stage::new(&bubblewrap);
    let secret = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let shown = tempfile::TempDir::new_in("/tmp").unwrap();
    std::fs::write(shown.path().join("tool"), "shown").unwrap();
    let mut spec = stage.script("test -e \"$1\" && echo leaked; cat \"$2/tool\"; (echo x > \"$2/new\") 2>/dev/null && echo wrote; (echo x > /etc/flashrig-test) 2>/dev/null && echo wrote; ls /proc | grep -c '^[0-9]'; echo end");
    spec.args = vec![secret.path().into(), shown.path().into()];
    spec.visible = vec![shown.path().to_path_buf()];
    let (_, lines) = run(spec).await;
    assert!(lines[0].starts_with("shown"), "{lines:?}");
    assert!(
        !lines.iter().any(|line| line == "leaked" || line == "wrote"),
        "{lines:?}"
    );
    let processes: u32 = lines[0].trim_start_matches("shown").parse().unwrap();
    assert!(
        processes < 10,
        "the operator's processes are not seen: {lines:?}"
    );
}

/// Case J2.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_8_mib_is_cut_and_the_result_after_it_is_found() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec = stage.script("head -c 8388608 /dev/zero | tr '\\0' x; echo; echo result");
        let file = stage.path("transcript");
        spec.output = Output::Separate {
            stdout: Some(file.clone()),
            stderr: None,
        };
        let running = start(spec).await;
        let long = running.stdout.next().await.unwrap();
        assert_eq!(long.bytes.len(), 1 << 20, "{sandbox:?}");
        assert_eq!(long.dropped_bytes, (8 << 20) - (1 << 20));
        assert_eq!(running.stdout.next().await.unwrap().text(), "result");
        running.wait_leader().await.unwrap();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert_eq!(
            (
                ended.stdout.lines,
                ended.stdout.cut_lines,
                ended.stdout.lost_lines
            ),
            (2, 1, 0)
        );
        assert_eq!(ended.stdout.end, StreamEnd::Eof);
        assert_eq!(
            std::fs::metadata(file).unwrap().len(),
            (8 << 20) + 8,
            "the file holds every byte"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_nobody_fetches_does_not_block_the_agent_and_its_file_is_bounded() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let mut spec = stage.script("yes 0123456789 | head -n 400000; echo last; echo oops >&2");
    spec.limits.waiting_bytes = 1 << 20;
    spec.limits.file_bytes = 1000;
    let (out, err) = (stage.path("out"), stage.path("err"));
    spec.output = Output::Separate {
        stdout: Some(out.clone()),
        stderr: Some(err.clone()),
    };
    let running = start(spec).await;
    running.wait_leader().await.unwrap();
    let lines = running.stdout.clone();
    let ended = running.finish(Duration::from_secs(5)).await;
    assert_eq!(ended.stdout.lines, 400_001);
    assert!(ended.stdout.lost_lines > 0);
    let mut last = None;
    while let Some(line) = lines.try_next() {
        last = Some(line);
    }
    assert_eq!(last.unwrap().text(), "last", "the newest lines are kept");
    assert_eq!(std::fs::read(out).unwrap().len(), 1000);
    assert_eq!(ended.stdout.file_missing_bytes, ended.stdout.bytes - 1000);
    assert_eq!(std::fs::read_to_string(err).unwrap(), "oops\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_closes_its_output_early_still_runs() {
    let stage = Stage::new(&Sandbox::ProcessGroup);
    let running = start(
        stage.script("echo first; exec >&- 2>&-; while ! test -e go; do sleep 0.02; done; exit 4"),
    )
    .await;
    assert_eq!(running.stdout.next().await.unwrap().text(), "first");
    assert_eq!(
        running.stdout.next().await,
        None,
        "the end of the output is seen"
    );
    assert_eq!(running.leader_exit(), None);
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(
        running.wait_leader().await.unwrap().status,
        flashrig_process::ExitStatus::Exited(4)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_a_file_that_is_none_and_a_missing_folder_are_refused_before_the_barrier()
{
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let error = Prepared::new(stage.program(&stage.path("nothing")))
            .await
            .unwrap_err();
        assert!(
            matches!(error, SpawnError::Program { .. }),
            "{sandbox:?}: {error}"
        );
        assert!(
            error.to_string().contains("nothing") && error.to_string().contains("no such file"),
            "{error}"
        );

        std::fs::write(stage.path("text"), "hello").unwrap();
        let error = Prepared::new(stage.program(&stage.path("text")))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("permission denied"), "{error}");

        let mut spec = stage.script("true");
        spec.dir = stage.path("nowhere");
        let error = Prepared::new(spec).await.unwrap_err();
        assert!(matches!(error, SpawnError::Directory { .. }), "{error}");

        let error = Prepared::new(stage.program("sh".as_ref()))
            .await
            .unwrap_err();
        assert!(
            matches!(error, SpawnError::RelativeProgram { .. }),
            "{error}"
        );
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_interpreter_is_named_and_arguments_too_long_are_an_error() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let spec = stage.script("true");
        std::fs::write(stage.path("agent.sh"), "#!/no/such/interpreter\n").unwrap();
        let error = Prepared::new(spec).await.unwrap().go().await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("interpreter `/no/such/interpreter`"),
            "{sandbox:?}: {error}"
        );

        let mut spec = stage.program("/bin/echo".as_ref());
        spec.args = vec!["x".repeat(3 << 20).into()];
        let error = Prepared::new(spec).await.unwrap().go().await.unwrap_err();
        assert!(
            error.to_string().contains("argument list too long"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_does_not_come_up_is_quoted() {
    let Ok(bubblewrap) = Sandbox::probe_bubblewrap().await else {
        return;
    };
    let stage = Stage::new(&bubblewrap);
    let mut spec = stage.script("true");
    spec.writable.push("/tmp/flashrig-no-such-folder".into());
    let error = Prepared::new(spec).await.unwrap_err();
    assert!(
        matches!(
            error,
            SpawnError::HelperLost {
                what: HelperFault::EndedEarly,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("/tmp/flashrig-no-such-folder"),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn cpu_time_and_memory_of_the_whole_tree_are_reported() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        // A grandchild in its own session burns CPU and holds memory; its parent is gone.
        let mut spec = stage.script(
            "(setsid \"$@\" >/dev/null 2>&1 &) ; while ! test -s burnt; do sleep 0.02; done",
        );
        spec.args = stage.role("runs::role_burner");
        spec.visible = vec![std::env::current_exe().unwrap()];
        let running = start(spec).await;
        crate::support::wait_until("the tree's memory is sampled", || {
            running
                .usage_now()
                .is_some_and(|now| now.rss_bytes > 40_000_000)
        });
        running.wait_leader().await.unwrap();
        let wall = Stamp::now().since(running.started);
        let ended = running.finish(Duration::from_secs(1)).await;
        let cpu = ended.usage.cpu.unwrap();
        assert!(cpu >= Duration::from_millis(900), "{sandbox:?}: {cpu:?}");
        assert!(cpu < wall * 2, "{cpu:?} of {wall:?}");
        assert!(ended.usage.peak_rss_bytes.unwrap() > 40_000_000);
        assert!(ended.usage.peak_rss_bytes >= ended.usage.largest_process_bytes);
        assert!(ended.usage.peak_processes.unwrap() >= 2);
    }
}

/// Not a test: a program that takes 64 MiB and one second of CPU, and then lingers.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a role played by this binary for other tests"]
fn role_burner() {
    let held = std::hint::black_box(vec![1_u8; 64 << 20]);
    let mut sum = 0_u64;
    while nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .unwrap()
        .tv_sec()
        < 1
    {
        sum = std::hint::black_box(sum + held.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    }
    std::fs::write("burnt", "yes").unwrap();
    loop {
        std::thread::park();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_program_uses_next_to_no_cpu() {
    for sandbox in sandboxes().await {
        let (ended, _) = run(Stage::new(&sandbox).script("exec sleep 0.5")).await;
        assert!(
            ended.usage.cpu.unwrap() < Duration::from_millis(200),
            "{sandbox:?}: {:?}",
            ended.usage
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_go_to_exec_takes_milliseconds() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let prepared = Prepared::new(stage.script("true")).await.unwrap();
            let barrier = Stamp::now();
            let running = prepared.go().await.unwrap();
            assert!(running.started >= barrier, "one clock for both processes");
            best = best.min(running.started.since(barrier));
            running.wait_leader().await.unwrap();
        }
        assert!(best < Duration::from_millis(50), "{sandbox:?}: {best:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sessions_start_and_end_side_by_side() {
    for sandbox in sandboxes().await {
        let stages: Vec<Stage> = (0..6).map(|_| Stage::new(&sandbox)).collect();
        let before = Instant::now();
        let sessions = stages
            .iter()
            .map(|stage| tokio::spawn(run(stage.script("echo one; sleep 0.2; echo two"))));
        for session in sessions.collect::<Vec<_>>() {
            let (_, lines) = session.await.unwrap();
            assert_eq!(lines, ["one", "two"]);
        }
        assert!(before.elapsed() < crate::support::PATIENCE);
    }
}
