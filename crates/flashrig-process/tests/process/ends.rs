//! Whatever a program leaves behind, nothing of it outlives `finish`, and its own clock stops at
//! its own exit.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Stage, run, sandboxes, start, wait_until};
use flashrig_process::{ExitStatus, StopReason, TreeEnd};

/// What a proven end looks like on this system.
fn is_gone(tree: &TreeEnd) -> bool {
    if cfg!(target_os = "linux") {
        *tree == TreeEnd::Gone
    } else {
        matches!(tree, TreeEnd::Gone | TreeEnd::GoneAsFarAsSeen)
    }
}

/// Case A1.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_reads_stdin_to_its_end_ends_at_once() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let (ended, lines) = run(stage.script("cat; echo done")).await;
        assert_eq!(lines, ["done"], "{sandbox:?}");
        assert_eq!(ended.leader.unwrap().status, ExitStatus::Exited(0));
        assert_eq!(ended.stopped, None);
        assert!(ended.leftovers.is_empty());
        assert!(is_gone(&ended.tree));
    }
}

/// Case B1.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_child_that_holds_stdout_is_listed_and_killed_and_does_not_stop_the_clock_late()
 {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let before = Instant::now();
        let (ended, lines) = run(stage.script("echo result; sleep 600 & exit 0")).await;
        assert_eq!(lines, ["result"], "{sandbox:?}");
        let leader = ended.leader.unwrap();
        assert_eq!(leader.status, ExitStatus::Exited(0));
        assert!(
            leader.stamp.since(ended.started) < Duration::from_secs(2),
            "the clock stops at the leader's exit"
        );
        assert!(before.elapsed() < PATIENCE);
        assert_eq!(ended.leftovers.len(), 1, "{:?}", ended.leftovers);
        assert!(
            ended.leftovers[0].command.contains("sleep"),
            "{:?}",
            ended.leftovers
        );
        assert!(is_gone(&ended.tree));
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

/// A measuring command of a sweep has a server of its own to bring to an end in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_asked_alone_ends_its_own_children_as_it_likes() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let script = "sh -c 'trap \"echo child asked; exit 0\" TERM; echo up > child
                      while :; do sleep 0.01; done' & child=$!
                      trap 'echo leader asked' TERM
                      while ! test -s child; do sleep 0.01; done; echo up > ready
                      wait $child; kill -KILL $child; wait $child; exit 7";
        let running = start(stage.script(script)).await;
        stage.wait_for_file("ready");
        running.ask_leader();
        let leader = running.wait_leader().await.unwrap();
        assert_eq!(leader.status, ExitStatus::Exited(7), "{sandbox:?}");
        let lines = running.stdout.clone();
        let ended = running.finish(PATIENCE).await;
        let mut said = Vec::new();
        while let Some(line) = lines.try_next() {
            said.push(line.text().into_owned());
        }
        assert_eq!(said, ["leader asked"], "the child was left to the leader");
        assert_eq!(ended.stopped, None);
        assert!(is_gone(&ended.tree));
    }
}

/// Case B3.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn setsid_descendants_that_ignore_term_and_listen_on_a_port_do_not_survive() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        // setsid twice over with the parents gone: nothing but adoption leads to it.
        let mut spec = stage.script(
            "(setsid sh -c 'trap \"\" TERM; setsid \"$@\" & exit 0' x \"$@\" >/dev/null 2>&1 &)
             while ! test -s port; do sleep 0.01; done; echo listening",
        );
        spec.args = stage.role("ends::role_listener");
        spec.visible = vec![std::env::current_exe().unwrap()];
        let running = start(spec).await;
        assert_eq!(
            running.stdout.next().await.unwrap().text(),
            "listening",
            "{sandbox:?}"
        );
        let port: u16 = stage.wait_for_file("port").parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        running.wait_leader().await.unwrap();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert!(
            ended
                .leftovers
                .iter()
                .any(|l| l.command.contains("role_listener")),
            "{:?}",
            ended.leftovers
        );
        assert_eq!(ended.tree, TreeEnd::Gone);
        assert_eq!(stage.alive(), Vec::<String>::new());
        TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    }
}

/// Not a test: a program that listens until it is killed.
#[test]
#[ignore = "a role played by this binary for other tests"]
fn role_listener() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    std::fs::write(
        "port.new",
        listener.local_addr().unwrap().port().to_string(),
    )
    .unwrap();
    std::fs::rename("port.new", "port").unwrap();
    for connection in listener.incoming() {
        drop(connection);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_heeds_term_ends_by_itself_within_the_grace() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let mut spec =
            stage.script("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done");
        spec.grace = PATIENCE;
        let running = start(spec).await;
        running.stdout.next().await.unwrap();
        running.stop(StopReason::Idle);
        running.stop(StopReason::TimeLimit);
        let lines = running.stdout.clone();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert_eq!(
            ended.leader.unwrap().status,
            ExitStatus::Exited(7),
            "{sandbox:?}"
        );
        assert_eq!(
            ended.stopped,
            Some(StopReason::Idle),
            "the first reason counts"
        );
        assert_eq!(lines.try_next().unwrap().text(), "bye");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_and_children_that_ignore_term_are_killed_after_the_grace() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let running =
            start(stage.script("trap '' TERM; sleep 600 & echo up; while :; do sleep 0.02; done"))
                .await;
        running.stdout.next().await.unwrap();
        let before = Instant::now();
        running.stop(StopReason::TimeLimit);
        let exit = running.wait_leader().await.unwrap();
        assert!(
            before.elapsed() >= Duration::from_millis(300),
            "{sandbox:?}: the grace is given"
        );
        assert_eq!(exit.status, ExitStatus::Signalled(9));
        let ended = running.finish(Duration::from_secs(1)).await;
        assert!(before.elapsed() < Duration::from_secs(8));
        assert_eq!(ended.stopped, Some(StopReason::TimeLimit));
        assert!(is_gone(&ended.tree));
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_stop_shortens_the_grace() {
    let stage = Stage::new(&flashrig_process::Sandbox::ProcessGroup);
    let running = start(stage.script("trap '' TERM; echo up; while :; do sleep 0.02; done")).await;
    running.stdout.next().await.unwrap();
    let before = Instant::now();
    running.stop_within(StopReason::Lingering, Duration::from_secs(600));
    running.stop_within(StopReason::Interrupted, Duration::ZERO);
    running.wait_leader().await.unwrap();
    assert!(before.elapsed() < PATIENCE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_leader_is_ended_like_any_other() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let running =
            start(stage.script("trap 'exit 3' TERM; echo up; kill -STOP $$; sleep 600")).await;
        running.stdout.next().await.unwrap();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert_eq!(ended.stopped, Some(StopReason::Interrupted), "{sandbox:?}");
        assert!(is_gone(&ended.tree));
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_keeps_forking_is_outrun() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        // Each generation forks the next into a new session and is gone; four chains at a time.
        let script = "trap '' TERM; if test \"$1\" = chain; then setsid \"$0\" chain & exit 0; fi
             for i in 1 2 3 4; do setsid \"$0\" chain & done; echo up; exit 0";
        let running = start(stage.script(script)).await;
        running.wait_leader().await.unwrap();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert!(is_gone(&ended.tree), "{sandbox:?}: {:?}", ended.tree);
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_by_a_signal_is_told_from_one_that_exits() {
    let user_signal = nix::sys::signal::Signal::SIGUSR1 as i32;
    for sandbox in sandboxes().await {
        let (ended, _) = run(Stage::new(&sandbox).script("kill -USR1 $$")).await;
        assert_eq!(
            ended.leader.unwrap().status,
            ExitStatus::Signalled(user_signal),
            "{sandbox:?}"
        );
        assert_eq!(ended.stopped, None);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_without_a_name_is_told_like_any_other() {
    for sandbox in sandboxes().await {
        let (ended, _) = run(Stage::new(&sandbox).script("kill -40 $$")).await;
        let status = ended.leader.unwrap().status;
        assert_eq!(status, ExitStatus::Signalled(40), "{sandbox:?}");
        assert_eq!(status.to_string(), "killed by signal 40");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_running_program_kills_its_tree() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let running =
            start(stage.script("trap '' TERM; setsid sleep 600 & echo up; sleep 600")).await;
        running.stdout.next().await.unwrap();
        assert!(!stage.alive().is_empty());
        drop(running);
        wait_until("nothing is left", || stage.alive().is_empty());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_freezes_its_supervisor_is_killed_from_outside() {
    let stage = Stage::new(&flashrig_process::Sandbox::ProcessGroup);
    let running = start(stage.script("setsid sleep 600 & while ! test -e go; do sleep 0.02; done; kill -STOP $PPID; echo up; sleep 600")).await;
    std::fs::write(stage.path("go"), "").unwrap();
    running.stdout.next().await.unwrap();
    let ended = running.finish(Duration::from_secs(1)).await;
    assert_eq!(ended.tree, TreeEnd::GoneAsFarAsSeen);
    assert_eq!(ended.leader, None);
    assert_eq!(stage.alive(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_kills_its_supervisor_gains_nothing() {
    for sandbox in sandboxes().await {
        let stage = Stage::new(&sandbox);
        let running = start(stage.script("setsid sleep 600 & echo up; while ! test -e go; do sleep 0.02; done; kill -KILL $PPID; sleep 600")).await;
        running.stdout.next().await.unwrap();
        // The sample in which the child is seen; only it leads to the child afterwards.
        wait_until("the child is seen", || {
            running
                .usage_now()
                .is_some_and(|reading| reading.processes >= 2)
        });
        // In a namespace its supervisor is process 1 and cannot be killed from inside.
        std::fs::write(stage.path("go"), "").unwrap();
        let ended = running.finish(Duration::from_secs(1)).await;
        assert!(
            matches!(ended.tree, TreeEnd::Gone | TreeEnd::GoneAsFarAsSeen),
            "{sandbox:?}: {:?}",
            ended.tree
        );
        assert_eq!(stage.alive(), Vec::<String>::new());
    }
}
