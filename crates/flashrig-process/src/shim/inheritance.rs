//! Keeps files that flashrig itself happened to inherit (a terminal multiplexer's socket, a build
//! tool's pipe) from reaching the program that is run.

use std::fs;
use std::os::fd::BorrowedFd;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Has every open file but the three standard ones closed on exec. Call it before any thread runs.
pub(super) fn end_here() {
    let Ok(entries) = fs::read_dir("/dev/fd") else {
        return;
    };
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        #[expect(
            unsafe_code,
            reason = "no other thread runs yet that could close the file meanwhile; one that is \
                      closed already (the listing's own) gives an error and nothing else"
        )]
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl(file, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    }
}
