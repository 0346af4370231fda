//! What every record says of the measuring instrument, the machine and the hour, and where records
//! may be kept.

use flashrig_config::without_temporary_name;
use std::path::Path;

use anyhow::anyhow;

use crate::exit::{Exit, Failure};
use flashrig_clock::{Origin, Seconds};
use flashrig_record::{Host, Rig};

/// flashrig itself; `sandbox` tells how sessions are contained.
pub fn rig(sandbox: &str) -> Rig {
    Rig {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sandbox: sandbox.to_owned(),
        cpu_s: None,
    }
}

/// The machine.
pub fn host() -> Host {
    let os = nix::sys::utsname::uname().map_or_else(
        |_| std::env::consts::OS.to_owned(),
        |u| {
            format!(
                "{} {}",
                u.sysname().to_string_lossy(),
                u.release().to_string_lossy()
            )
        },
    );
    let cores = std::thread::available_parallelism().ok();
    Host {
        os,
        arch: std::env::consts::ARCH.to_owned(),
        cores: cores.and_then(|n| u32::try_from(n.get()).ok()),
    }
}

/// Wall time of a run's start, RFC 3339, UTC.
pub fn started_at(origin: &Origin) -> String {
    origin.wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Found out before minutes are spent: the results folder can be written.
pub fn writable(results: &Path) -> Result<(), Failure> {
    let existing = results
        .ancestors()
        .find(|p| p.exists())
        .unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() {
        Path::new(".")
    } else {
        existing
    };
    tempfile::NamedTempFile::new_in(existing)
        .map(drop)
        .map_err(without_temporary_name)
        .map_err(|e| Failure {
            exit: Exit::Rig,
            error: anyhow!(
                "the results folder {} cannot be written: {e}; choose another with --results",
                results.display()
            ),
        })
}

/// CPU time of this process, user and system.
pub fn own_cpu() -> Option<Seconds> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |t: nix::sys::time::TimeVal| {
        use nix::sys::time::TimeValLike;
        #[expect(
            clippy::cast_precision_loss,
            reason = "microseconds of CPU stay below 2^53"
        )]
        let s = t.num_microseconds() as f64 / 1e6;
        s
    };
    Some(Seconds(
        seconds(usage.user_time()) + seconds(usage.system_time()),
    ))
}
