//! The `flashrig` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == flashrig_process::shim::SUBCOMMAND)
    {
        return flashrig_process::shim::main();
    }
    flashrig::cli::main()
}
