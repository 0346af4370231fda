//! Scripted agents and a look at the machine from outside, for the tests of the process room.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashrig_process::{Ended, Prepared, Running, Sandbox, Spec};
use tempfile::TempDir;

/// The environment variable that marks every process of one test.
pub const MARK: &str = "FLASHRIG_TEST_MARK";

/// How long a test waits for something that should happen soon, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Every way of keeping a tree together that works on this machine.
pub async fn sandboxes() -> Vec<Sandbox> {
    let mut all = vec![Sandbox::ProcessGroup];
    match Sandbox::probe_bubblewrap().await {
        Ok(bubblewrap) => all.push(bubblewrap),
        Err(reason) => eprintln!("without bubblewrap: {reason}"),
    }
    all
}

/// A folder with a scripted agent, gone with everything marked when it is dropped.
pub struct Stage {
    pub dir: TempDir,
    pub mark: String,
    sandbox: Sandbox,
}

impl Stage {
    pub fn new(sandbox: &Sandbox) -> Self {
        let dir = TempDir::new().unwrap();
        let mark = dir
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        Self {
            dir,
            mark,
            sandbox: sandbox.clone(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A spec that runs `script` with `/bin/sh`.
    pub fn script(&self, script: &str) -> Spec {
        let file = self.path("agent.sh");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self.program(&file)
    }

    pub fn program(&self, program: &Path) -> Spec {
        let mut spec = Spec::new(
            &self.mark,
            program,
            self.dir.path(),
            self.sandbox.clone(),
            env!("CARGO_BIN_EXE_flashrig-supervisor"),
        );
        spec.env = vec![
            (MARK.into(), self.mark.clone().into()),
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ];
        spec.writable = vec![self.dir.path().to_path_buf()];
        spec.grace = Duration::from_millis(300);
        spec
    }

    /// A program that plays a role of this test binary: an ignored test, run as a program.
    pub fn role(&self, role: &str) -> Vec<OsString> {
        vec![
            std::env::current_exe().unwrap().into(),
            role.into(),
            "--exact".into(),
            "--ignored".into(),
            "--nocapture".into(),
        ]
    }

    /// Processes of this test that are alive, as the machine sees them.
    #[cfg(target_os = "linux")]
    pub fn alive(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        let of_this_test = |pid: &str| {
            // The environment of a zombie is empty.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|b| *b == 0)
                .any(|entry| entry == mark.as_bytes())
        };
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && of_this_test(name))
            .map(|pid| {
                let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!(
                    "{pid} {}",
                    String::from_utf8_lossy(&command).replace('\0', " ")
                )
            })
            .collect()
    }

    #[cfg(not(target_os = "linux"))]
    pub fn alive(&self) -> Vec<String> {
        let listing = std::process::Command::new("/bin/ps")
            .args(["-axEo", "pid,stat,command"])
            .output()
            .unwrap();
        let mark = format!("{MARK}={}", self.mark);
        String::from_utf8_lossy(&listing.stdout)
            .lines()
            .filter(|line| line.contains(&mark))
            .map(str::to_owned)
            .collect()
    }

    pub fn wait_for_file(&self, name: &str) -> String {
        wait_until(&format!("{name} is written"), || {
            !self.text(name).is_empty()
        });
        self.text(name)
    }
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub async fn start(spec: Spec) -> Running {
    Prepared::new(spec).await.unwrap().go().await.unwrap()
}

/// Lets it end by itself.
pub async fn run(spec: Spec) -> (Ended, Vec<String>) {
    let running = start(spec).await;
    tokio::time::timeout(PATIENCE, running.wait_leader())
        .await
        .expect("ends by itself")
        .unwrap();
    let lines = running.stdout.clone();
    let ended = running.finish(Duration::from_secs(1)).await;
    let mut text = Vec::new();
    while let Some(line) = lines.try_next() {
        text.push(line.text().into_owned());
    }
    (ended, text)
}
