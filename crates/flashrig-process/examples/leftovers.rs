//! Runs a shell that leaves a background child behind, and shows that nothing of it is left.
//!
//! This program is its own supervising helper: it is started again with `shim::SUBCOMMAND`.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use flashrig_process::{Prepared, Sandbox, Spec, TreeEnd, shim};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Before any thread runs: the helper must not be asynchronous.
    if std::env::args_os().nth(1).as_deref() == Some(shim::SUBCOMMAND.as_ref()) {
        return Ok(shim::main());
    }
    tokio::runtime::Runtime::new()?.block_on(run())?;
    Ok(ExitCode::SUCCESS)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut spec = Spec::new(
        "example",
        "/bin/sh",
        std::env::temp_dir(),
        Sandbox::ProcessGroup,
        std::env::current_exe()?,
    );
    spec.args = vec!["-c".into(), "sleep 600 & echo done".into()];
    spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];

    let running = Prepared::new(spec).await?.go().await?;
    if let Some(line) = running.stdout.next().await {
        println!("it printed: {}", line.text());
    }
    let exit = running.wait_leader().await?;
    println!(
        "the shell ended after {:.3} s: {}",
        exit.stamp.since(running.started).as_secs_f64(),
        exit.status
    );

    let ended = running.finish(Duration::from_millis(100)).await;
    for leftover in &ended.leftovers {
        println!("it left process {}: {}", leftover.pid, leftover.command);
    }
    match ended.tree {
        TreeEnd::Gone => println!("nothing is left, and the system guarantees it"),
        TreeEnd::GoneAsFarAsSeen => println!("nothing is left of what was seen"),
        TreeEnd::Survivors(left) => return Err(format!("still running: {left:?}").into()),
    }
    Ok(())
}
