//! The machine as seen from outside: which processes of a test are alive.

use std::path::Path;
#[cfg(not(target_os = "linux"))]
use std::process::Command;

/// Living processes whose environment names `folder`: flashrig itself by its TMPDIR, agents and
/// what they leave behind by their private home.
#[cfg(target_os = "linux")]
pub fn alive(folder: &Path) -> Vec<String> {
    let mark = folder.as_os_str().as_encoded_bytes();
    let named = |pid: &str, file: &str| std::fs::read(format!("/proc/{pid}/{file}"));
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        // The environment of a zombie is empty.
        .filter(|pid| {
            let environment = named(pid, "environ").unwrap_or_default();
            environment.windows(mark.len()).any(|w| w == mark)
        })
        .map(|pid| {
            let command = named(&pid, "cmdline").unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{pid} {command}")
        })
        .collect()
}

/// The same by `ps`, which shows the environments of the user's own processes.
#[cfg(not(target_os = "linux"))]
pub fn alive(folder: &Path) -> Vec<String> {
    let listing = Command::new("/bin/ps")
        .args(["-axEwwo", "pid,stat,command"])
        .output()
        .unwrap();
    let mark = folder.display().to_string();
    String::from_utf8_lossy(&listing.stdout)
        .lines()
        .filter(|line| line.contains(&mark))
        .map(str::to_owned)
        .collect()
}
