//! Finds a program and asks it for its version, with a time limit.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::time::Duration;

use flashrig_process::{ShortCommand, find_program, run_short};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = find_program("cargo", &path) else {
        println!("cargo is not on the PATH");
        return Ok(());
    };
    let command = ShortCommand {
        program,
        args: vec!["--version".into()],
        env: vec![("PATH".into(), path)],
    };
    let output = run_short(command, Duration::from_secs(10)).await?;
    println!("{}: {}", output.status, output.text.trim());
    Ok(())
}
