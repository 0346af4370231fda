//! Starts the simulated server, asks who it is, and waits until it is idle. Needs no network and no
//! model.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::time::Duration;

use flashrig_server::{Target, Wanted, connect, wait_idle};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = Target::parse(Some("sim"), Some(100.0), None)?;
    let server = connect(&target, &Wanted::default(), Vec::new(), None).await?;
    let record = &server.record;
    println!("{} at {} serves {}", record.name, record.url, record.model);
    println!("context: {:?} tokens", record.context_tokens);
    let idle = wait_idle(&server, Duration::from_secs(5)).await?;
    println!("idle after {:?}, known by {:?}", idle.waited, idle.by);
    for line in server.last_lines() {
        println!("log: {line}");
    }
    Ok(())
}
