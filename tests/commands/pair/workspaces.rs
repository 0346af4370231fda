//! What agents do to their repository, and to ones that are not theirs: cases H1, H2, H3.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use flashrig_testkit::waiting::wait_until;

use crate::pair::stage::{Ran, Stage, TASK, names, sandboxes, text};

fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@own.example"])
        .args(args)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// The patches of both arms of a run in which the agent took `step` after its work.
fn patches(step: &str) -> Vec<String> {
    let mut steps = vec!["ask", "write greeting.txt hello", "write new.txt new"];
    if !step.is_empty() {
        steps.push(step);
    }
    let stage = Stage::with(&steps);
    let ran = stage.pair(&[]);
    ran.both("completed")
        .iter()
        .map(|session| {
            assert_eq!(session["diff"]["files"], 2, "{step}: {session:#}");
            stage.result_text(&format!("sessions/{}/diff.patch", text(session, "folder")))
        })
        .collect()
}

#[test]
fn the_patch_is_the_same_however_the_agent_leaves_its_repository() {
    let left_alone = patches("");
    assert!(left_alone[0].contains("+hello"), "{left_alone:?}");
    assert!(left_alone[0].contains("+new"), "{left_alone:?}");
    assert_eq!(left_alone[0], left_alone[1]);
    for step in [
        "sh git add -A",
        "sh git add -A && git -c user.name=a -c user.email=a@a commit -qm done",
        "sh git checkout -q -b other && git add -A && git -c user.name=a -c user.email=a@a \
         commit -qm done && git gc -q",
        "sh rm -rf .git",
    ] {
        assert_eq!(patches(step), left_alone, "{step}");
    }
}

#[test]
fn a_weakened_guard_is_restored_before_verification_and_told_as_a_protected_file() {
    let stage = Stage::new();
    // A guard that fails on the agent's work unless the agent weakens it.
    stage.write(
        "fixtures/tiny/tree/guard/check.sh",
        "test \"$(cat greeting.txt)\" != 'hello there'\n",
    );
    stage.agent(&crate::pair::stage::Agent {
        steps: &[
            "ask",
            "write greeting.txt hello there",
            "write guard/check.sh exit 0",
            "result",
        ],
        ..Default::default()
    });
    let ran = stage.pair(&[]);
    for session in ran.both("completed") {
        assert_eq!(
            session["diff"]["protected_touched"],
            serde_json::json!(["guard/check.sh"])
        );
        let guard = session["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["name"] == "guard")
            .unwrap();
        assert_eq!(guard["outcome"], "failed", "the weakened guard ran");
    }
    assert_eq!(ran.functional(), "fail");
    let reasons = ran.reasons();
    assert!(
        reasons.contains("protected files touched: guard/check.sh"),
        "{reasons}"
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_protected_file_that_was_touched_fails_the_session_though_every_check_passes() {
    let stage = Stage::with(&[
        "ask",
        "write greeting.txt hello",
        "write guard/check.sh test -e greeting.txt",
    ]);
    let ran = stage.pair(&[]);
    ran.both("completed");
    assert_eq!(ran.functional(), "fail");
    assert!(ran.reasons().contains("protected files touched"));
}

/// A stage whose task starts from the repository `own` of the project at the tag `start`; later
/// commits must not reach the agent.
fn with_own_repository(steps: &[&str]) -> Stage {
    let stage = Stage::with(steps);
    stage.write("own/greeting.txt", "nothing\n");
    stage.write("own/guard/check.sh", "test -f greeting.txt\n");
    let own = stage.project().join("own");
    git(&own, &["init", "-q", "-b", "main"]);
    git(&own, &["add", "-A"]);
    git(&own, &["commit", "-qm", "begin"]);
    git(&own, &["tag", "start"]);
    stage.write("own/later.txt", "later\n");
    git(&own, &["add", "-A"]);
    git(&own, &["commit", "-qm", "later"]);
    let source = "repo = \"../../own\"\nrev = \"start\"";
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("fixture = \"tiny\"", source),
    );
    stage
}

#[test]
fn a_task_on_a_repository_of_the_users_starts_from_the_named_revision() {
    for sandbox in sandboxes() {
        let stage = with_own_repository(&[
            "ask",
            "sh test ! -e later.txt",
            "write greeting.txt hello",
            "result",
        ]);
        let ran = stage.pair(&["--sandbox", sandbox]);
        ran.both("completed");
        assert_eq!(ran.functional(), "pass", "{ran:#?}");
        let own = stage.project().join("own/greeting.txt");
        assert_eq!(std::fs::read_to_string(own).unwrap(), "nothing\n");
    }
}

#[test]
fn an_agent_that_edits_the_source_repository_is_escaped() {
    // The agent finds the repository by a path that is written into its steps.
    let stage = with_own_repository(&[]);
    let own = stage.project().join("own/greeting.txt");
    let edit = format!("sh echo more >> '{}'", own.display());
    stage.agent(&crate::pair::stage::Agent {
        steps: &["ask", "write greeting.txt hello", &edit, "result"],
        ..Default::default()
    });
    let ran = stage.pair(&["--sandbox", "none"]);
    for session in ran.both("escaped") {
        let detail = text(&session, "detail");
        assert!(detail.contains("greeting.txt"), "{detail}");
    }
    assert_eq!(ran.functional(), "fail");
    assert_eq!(ran.code, Some(1));
}

/// A stage whose project is itself the repository that its task starts from: results, tasks and
/// the temporary folder lie in it.
fn in_own_repository(steps: &[&str]) -> Stage {
    let stage = Stage::with(steps);
    stage.write("greeting.txt", "nothing\n");
    stage.write("guard/check.sh", "test -f greeting.txt\n");
    stage.write(
        "tasks/tiny/task.toml",
        &TASK.replace("fixture = \"tiny\"", "repo = \"../..\"\nrev = \"main\""),
    );
    git(&stage.project(), &["init", "-q", "-b", "main"]);
    git(&stage.project(), &["add", "-A"]);
    git(&stage.project(), &["commit", "-qm", "begin"]);
    stage
}

#[test]
fn what_flashrig_itself_writes_into_the_users_repository_is_no_agents_doing() {
    for sandbox in sandboxes() {
        let stage = in_own_repository(&crate::pair::stage::GOOD);
        let project = stage.project();
        let (tmp, cache) = (project.join("tmp"), project.join("cache"));
        std::fs::create_dir(&tmp).unwrap();
        std::fs::create_dir(&cache).unwrap();
        let args = [
            "pair", "--json", "--agent", "mine", "--task", "tiny", "--task", "tiny",
        ];
        let mut flashrig = stage.flashrig(&args);
        flashrig
            .args(["--speed", "50", "--rounds", "2", "--sandbox", sandbox])
            .env("TMPDIR", &tmp)
            .env("FLASHRIG_CACHE", &cache);
        let ran = Ran::of(flashrig.output().unwrap());
        assert_eq!(ran.code, Some(0), "{sandbox}: {ran:#?}");
        assert_eq!(ran.functional(), "pass", "{sandbox}: {ran:#?}");
        assert!(!ran.stderr.contains("changed"), "{sandbox}: {ran:#?}");
    }
}

/// Saves five files in the user's repository while the sessions of the first arm wait for it, and
/// lets every session go on.
fn save_meanwhile(stage: &Stage, over: &AtomicBool) {
    let (project, tmp) = (stage.project(), stage.folder().join("tmp"));
    let mut saved = false;
    wait_until("the run is over", || {
        let own = names(&tmp).pop().map(|own| tmp.join(own));
        let run = own.and_then(|own| Some(own.join(names(&own).pop()?)));
        for session in ["s1", "s2"] {
            let Some(work) = run.as_ref().map(|run| run.join(session).join("work")) else {
                continue;
            };
            if !work.join("guard/check.sh").exists() || !all_started(&project) {
                continue;
            }
            for n in (1..=5).filter(|_| !saved) {
                std::fs::write(project.join(format!("edited{n}.txt")), "x").unwrap();
            }
            saved = true;
            // The workspace may be gone by now.
            let _ = std::fs::write(work.join("go"), "x");
        }
        over.load(Ordering::Relaxed)
    });
}

fn all_started(project: &Path) -> bool {
    let run = names(&project.join("results")).pop();
    let events = run.map(|run| project.join("results").join(run).join("events.jsonl"));
    let events = events.and_then(|events| std::fs::read_to_string(events).ok());
    events.is_some_and(|events| events.matches("session_started").count() >= 2)
}

/// What came of a run of two sessions in a user's repository in which files were saved meanwhile.
fn with_files_saved(sandbox: &str) -> Ran {
    let stage = in_own_repository(&["ask", "wait-for go", "write greeting.txt hello"]);
    // Bubblewrap does not work everywhere; what flashrig makes of it can be seen all the same.
    let bwrap = stage.folder().join("bin/bwrap");
    std::fs::create_dir(bwrap.parent().unwrap()).unwrap();
    let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    std::fs::write(&bwrap, script).unwrap();
    std::fs::set_permissions(&bwrap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| save_meanwhile(&stage, &over));
        let args = [
            "pair", "--json", "--agent", "mine", "--task", "tiny", "--task", "tiny",
        ];
        let mut flashrig = stage.flashrig(&args);
        flashrig.args(["--speed", "50", "--sandbox", sandbox]).env(
            "PATH",
            format!("{}:/usr/bin:/bin", stage.folder().join("bin").display()),
        );
        let ran = flashrig.output();
        over.store(true, Ordering::Relaxed);
        Ran::of(ran.unwrap())
    })
}

const SAVED: &str =
    "edited1.txt was added, edited2.txt was added, edited3.txt was added and 2 more";

#[test]
fn files_that_were_saved_meanwhile_are_one_note_where_a_sandbox_keeps_agents_out() {
    let ran = with_files_saved("bubblewrap");
    assert_eq!(ran.record()["rig"]["sandbox"], "bubblewrap");
    assert!(!ran.stderr.contains("without a sandbox"), "{ran:#?}");
    assert_eq!(ran.functional(), "pass", "{ran:#?}");
    assert_eq!(ran.stderr.matches("changed while sessions ran").count(), 1);
    assert!(ran.stderr.contains(SAVED), "{ran:#?}");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn without_a_sandbox_at_most_three_of_the_changed_files_are_named() {
    let ran = with_files_saved("none");
    assert_eq!(ran.stderr.matches("without a sandbox").count(), 1);
    for session in ran.arms()[0]["sessions"].as_array().unwrap() {
        assert_eq!(session["status"], "escaped", "{session:#}");
        let detail = text(session, "detail");
        assert!(detail.ends_with(SAVED), "{detail}");
    }
    assert_eq!(ran.code, Some(1));
}

#[test]
fn an_agent_that_ruins_its_workspace_fails_alone_and_the_run_is_told_to_its_end() {
    for sandbox in sandboxes() {
        for ruin in [
            "sh W=\"$PWD\"; rm -rf \"$W\"/* \"$W\"/.git; cd / && rmdir \"$W\" || true",
            "sh rm -rf guard greeting.txt && mkfifo greeting.txt && ln -s / guard",
            "sh mkdir deep && touch deep/file && chmod 000 deep greeting.txt",
        ] {
            let stage = Stage::with(&["ask", ruin, "result"]);
            let ran = stage.pair(&["--sandbox", sandbox]);
            ran.both("completed");
            assert_eq!(
                ran.record()["state"],
                "finished",
                "{sandbox} {ruin}: {ran:#?}"
            );
            assert_eq!(ran.functional(), "fail", "{sandbox} {ruin}");
            assert_eq!(ran.code, Some(1), "{sandbox} {ruin}");
        }
    }
}

#[test]
fn an_agent_that_kills_its_supervisor_takes_itself_along_and_is_no_success() {
    for sandbox in sandboxes() {
        // A PID namespace also takes along what has left the session. Without one, nobody is left
        // who adopted it.
        let leave = if sandbox == "none" {
            "sh true"
        } else {
            "sh setsid sleep 635 &"
        };
        let stage = Stage::with(&[
            "ask",
            "write greeting.txt hello",
            leave,
            "sh kill -9 $(ps -o ppid= -p $PPID)",
            "hang",
        ]);
        let ran = stage.pair(&["--sandbox", sandbox, "--time-limit", "5s"]);
        // The supervisor of a namespace is its first process, which no signal from inside ends.
        let status = if sandbox == "none" {
            "rig_error"
        } else {
            "timeout"
        };
        ran.both(status);
        assert_ne!(ran.code, Some(0), "{sandbox}: {ran:#?}");
        assert_ne!(ran.functional(), "pass", "{sandbox}: {ran:#?}");
    }
}

#[test]
fn sessions_are_verified_as_many_at_once_as_there_are_processors() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        // One after the other is right there.
        return;
    }
    let stage = Stage::with(&["ask", "write greeting.txt hello", "result"]);
    let seen = stage.folder().join("seen");
    // Passes when the other session's check runs meanwhile.
    let script = format!(
        "mkdir -p {0}; touch {0}/$$; i=0; while [ $i -lt 300 ]; do [ $(ls {0} | wc -l) -ge 2 ] && \
         exit 0; sleep 0.1; i=$((i + 1)); done; exit 1",
        seen.display()
    );
    let meet = stage.folder().join("meet.sh");
    std::fs::write(&meet, script).unwrap();
    let check = format!(
        "\n[[checks]]\nname = \"meets\"\nrun = \"sh '{}'\"\ntime_limit = \"1m\"\nbefore = \"pass\"\n",
        meet.display()
    );
    stage.write("tasks/tiny/task.toml", &format!("{TASK}{check}"));
    let ran = stage.pair(&["--task", "tiny", "--task", "tiny", "--sandbox", "none"]);
    assert_eq!(ran.functional(), "pass", "{ran:#?}");
}
