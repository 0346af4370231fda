//! Nothing outlives flashrig itself, even when it is killed without a chance to say so.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Stage, sandboxes, start, wait_until};
use flashrig_process::{Prepared, Sandbox, SandboxChoice};

const STAGE_DIR: &str = "FLASHRIG_TEST_STAGE";

/// Starts this test binary as an owner of trees, and kills it without warning when `ready` says so.
fn kill_an_owner(sandbox: &Sandbox, role: &str, ready: impl Fn(&Stage) -> bool) -> Stage {
    let stage = Stage::new(sandbox);
    let command = stage.role(role);
    let mut owner = Command::new(&command[0])
        .args(&command[1..])
        .env(STAGE_DIR, stage.dir.path())
        .env("FLASHRIG_TEST_SANDBOX", sandbox.name())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the owner's tree is up", || ready(&stage));
    owner.kill().unwrap();
    owner.wait().unwrap();
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_of_flashrig_leaves_no_process_of_a_running_tree() {
    for sandbox in sandboxes().await {
        let stage = kill_an_owner(&sandbox, "owner::role_owner_of_running", |stage| {
            !stage.text("up").is_empty()
        });
        wait_until("nothing is left", || stage.alive().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_of_flashrig_leaves_no_helper_that_waits_for_the_barrier() {
    for sandbox in sandboxes().await {
        let stage = kill_an_owner(&sandbox, "owner::role_owner_of_prepared", |stage| {
            !stage.text("prepared").is_empty()
        });
        let helper = stage.text("prepared");
        wait_until("the helper is gone", || {
            !std::path::Path::new(&format!("/proc/{}/exe", helper.trim())).exists()
        });
    }
}

/// The sandbox as named by the test that plays this role's other half, and the stage's folder.
async fn role_stage() -> Option<(Stage, PathBuf)> {
    let dir = PathBuf::from(std::env::var_os(STAGE_DIR)?);
    let choice = if std::env::var("FLASHRIG_TEST_SANDBOX").ok()? == "bubblewrap" {
        SandboxChoice::Bubblewrap
    } else {
        SandboxChoice::None
    };
    let mut stage = Stage::new(&Sandbox::detect(choice).await.unwrap());
    // What is started must carry the mark of the test that watches.
    stage.mark = dir.file_name().unwrap().to_string_lossy().into_owned();
    Some((stage, dir))
}

/// Not a test: an owner of a tree that resists.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a role played by this binary for other tests"]
async fn role_owner_of_running() {
    let Some((stage, dir)) = role_stage().await else {
        return;
    };
    let mut spec = stage.script("trap '' TERM HUP; setsid sleep 600 & (setsid sleep 600 &) ; echo up > \"$1/up\"; while :; do sleep 1; done");
    spec.args = vec![dir.clone().into()];
    spec.writable.push(dir);
    let running = start(spec).await;
    running.wait_leader().await.unwrap();
}

/// Not a test: an owner of a program that waits for the barrier.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a role played by this binary for other tests"]
async fn role_owner_of_prepared() {
    let Some((stage, dir)) = role_stage().await else {
        return;
    };
    let prepared = Prepared::new(stage.script("echo never")).await.unwrap();
    let me = std::process::id().to_string();
    let helper = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .nth(1)
                == Some(me.as_str())
        })
        .expect("the helper is a child of this process");
    std::fs::write(dir.join("prepared.new"), helper).unwrap();
    std::fs::rename(dir.join("prepared.new"), dir.join("prepared")).unwrap();
    std::future::pending::<()>().await;
    drop(prepared);
}
