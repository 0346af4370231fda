//! How a server ended.

use nix::sys::signal::Signal;

use flashrig_process::ExitStatus;
use flashrig_record::ServerExit;

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
pub(super) fn exit(
    status: Option<ExitStatus>,
    oom: Option<bool>,
    last_lines: &[String],
) -> ServerExit {
    let named = |number: i32| Signal::try_from(number).ok();
    let (exit_code, signal) = match status {
        None => (None, None),
        Some(ExitStatus::Exited(code)) => {
            // A shell around the server tells of a signal so.
            let signal = named(code.saturating_sub(128)).map(|signal| signal as i32);
            (Some(code), signal)
        }
        Some(ExitStatus::Signalled(number)) => (None, Some(number)),
    };
    let says = |line: &&String| {
        let line = line.to_lowercase();
        NO_MEMORY.iter().any(|sign| line.contains(sign))
    };
    let memory_line = last_lines.iter().rev().find(says);
    ServerExit {
        exit_code,
        signal,
        signal_name: signal
            .and_then(named)
            .map(|signal| signal.as_str().to_owned()),
        out_of_memory_kills: oom,
        memory_line: memory_line.map(|line| line.trim().to_owned()),
        restart_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Option<ExitStatus>, oom: Option<bool>, log: &[String]) -> String {
        exit(status, oom, log).to_string()
    }

    #[test]
    fn a_kill_for_lack_of_memory_is_named_as_such_and_another_one_is_not() {
        let kill = Some(ExitStatus::Signalled(9));
        assert!(ended(kill, Some(true), &[]).contains("for lack of memory (out of memory"));
        assert!(ended(kill, Some(false), &[]).contains("not for lack of memory"));
        assert!(ended(kill, None, &[]).contains("this system does not tell"));
        // A shell around the server.
        let below = ended(Some(ExitStatus::Exited(137)), Some(true), &[]);
        assert!(
            below.starts_with("ended with exit code 137: killed by SIGKILL for lack of memory"),
            "{below}"
        );
    }

    #[test]
    fn what_the_log_says_of_memory_stands_beside_the_exit_code() {
        let log = ["loading", "CUDA error: out of memory", "bye"].map(str::to_owned);
        assert_eq!(
            ended(Some(ExitStatus::Exited(1)), Some(false), &log),
            "ended with exit code 1, and its log speaks of a lack of memory (CUDA error: out of \
             memory)"
        );
        assert_eq!(
            ended(Some(ExitStatus::Exited(1)), None, &log[..1]),
            "ended with exit code 1"
        );
    }

    #[test]
    fn signals_are_named_with_what_they_mean() {
        let crash = ended(Some(ExitStatus::Signalled(11)), None, &[]);
        assert_eq!(crash, "was killed by SIGSEGV, a crash");
        let term = ended(Some(ExitStatus::Exited(143)), None, &[]);
        assert!(
            term.ends_with("SIGTERM, which was not flashrig's"),
            "{term}"
        );
    }
}
