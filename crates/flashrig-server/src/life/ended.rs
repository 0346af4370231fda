//! How a server ended, in words, and what that means.

use nix::sys::signal::Signal;

use flashrig_process::ExitStatus;

/// What logs say when memory ran out.
const NO_MEMORY: [&str; 9] = [
    "out of memory",
    "out-of-memory",
    "outofmemory",
    "bad_alloc",
    "memoryerror",
    "failed to allocate",
    "cannot allocate memory",
    "insufficient memory",
    "unable to allocate",
];

/// How a server ended that was not asked to. `oom` tells whether the system killed anything for
/// lack of memory meanwhile, where it counts that.
pub(super) fn message(
    status: Option<ExitStatus>,
    oom: Option<bool>,
    last_lines: &[String],
) -> String {
    let mut message = match status {
        None => "was lost: its supervising helper was killed".to_owned(),
        Some(ExitStatus::Exited(0)) => "ended by itself, with exit code 0".to_owned(),
        Some(ExitStatus::Exited(code)) => match Signal::try_from(code - 128) {
            Ok(Signal::SIGKILL) => format!("ended with exit code {code}: {}", killed(oom)),
            Ok(signal) => format!("ended with exit code {code}: {}", meant(signal)),
            Err(_) => format!("ended with exit code {code}"),
        },
        Some(ExitStatus::Signalled(number)) => match Signal::try_from(number) {
            Ok(Signal::SIGKILL) => format!("was {}", killed(oom)),
            Ok(signal) => format!("was {}", meant(signal)),
            Err(_) => format!("was killed by signal {number}"),
        },
    };
    let says = |line: &&String| {
        let line = line.to_lowercase();
        NO_MEMORY.iter().any(|sign| line.contains(sign))
    };
    if let Some(line) = last_lines.iter().rev().find(says) {
        message.push_str(&format!(
            ", and its log speaks of a lack of memory ({})",
            line.trim()
        ));
    }
    message
}

fn killed(oom: Option<bool>) -> &'static str {
    match oom {
        Some(true) => {
            "killed by SIGKILL for lack of memory (out of memory: the system's killer struck \
             meanwhile); give it a smaller model, context or cache"
        }
        Some(false) => {
            "killed by SIGKILL, which was not flashrig's, and not for lack of memory (the system \
             counts no such kill)"
        }
        None => {
            "killed by SIGKILL, which was not flashrig's; whether for lack of memory (out of \
             memory) this system does not tell"
        }
    }
}

fn meant(signal: Signal) -> String {
    let means = match signal {
        Signal::SIGSEGV | Signal::SIGBUS => ", a crash",
        Signal::SIGABRT => ", by which a program ends itself when it finds a fault",
        Signal::SIGILL => {
            ", an instruction that this processor does not have (a build for another one?)"
        }
        Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP => ", which was not flashrig's",
        _ => "",
    };
    format!("killed by {signal}{means}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_for_lack_of_memory_is_named_as_such_and_another_one_is_not() {
        let kill = Some(ExitStatus::Signalled(9));
        assert!(message(kill, Some(true), &[]).contains("for lack of memory (out of memory"));
        assert!(message(kill, Some(false), &[]).contains("not for lack of memory"));
        assert!(message(kill, None, &[]).contains("this system does not tell"));
        // A shell around the server.
        let below = message(Some(ExitStatus::Exited(137)), Some(true), &[]);
        assert!(
            below.starts_with("ended with exit code 137: killed by SIGKILL for lack of memory"),
            "{below}"
        );
    }

    #[test]
    fn what_the_log_says_of_memory_stands_beside_the_exit_code() {
        let log = ["loading", "CUDA error: out of memory", "bye"].map(str::to_owned);
        assert_eq!(
            message(Some(ExitStatus::Exited(1)), Some(false), &log),
            "ended with exit code 1, and its log speaks of a lack of memory (CUDA error: out of \
             memory)"
        );
        assert_eq!(
            message(Some(ExitStatus::Exited(1)), None, &log[..1]),
            "ended with exit code 1"
        );
    }

    #[test]
    fn signals_are_named_with_what_they_mean() {
        let crash = message(Some(ExitStatus::Signalled(11)), None, &[]);
        assert_eq!(crash, "was killed by SIGSEGV, a crash");
        let term = message(Some(ExitStatus::Exited(143)), None, &[]);
        assert!(
            term.ends_with("SIGTERM, which was not flashrig's"),
            "{term}"
        );
    }
}
