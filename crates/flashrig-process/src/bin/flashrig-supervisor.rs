//! The supervising helper as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    flashrig_process::shim::main()
}
