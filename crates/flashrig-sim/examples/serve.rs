//! Starts a simulated server at ten times its stated speed, and asks it for its models.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::io::{Read, Write};
use std::net::TcpStream;

use flashrig_sim::{Faults, Sim, SimConfig, SimProfile, SimTable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table: SimTable = toml::from_str(
        "max_concurrent = 4\nprefill_s_per_token = 3e-4\nprefill_s_per_token_squared = 1e-9\n\
         cache_tokens = 1000000\ndecode = [{ batch = 1, step_ms = 15.2 }]",
    )?;
    let server = Sim::start(SimConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        profile: SimProfile::new("example", "example-model", 131_072, &table)?,
        speed: 10.0,
        scripts: Vec::new(),
        seed: 1,
        log: None,
        server_log: None,
        faults: Faults::default(),
    })?;
    let mut stream = TcpStream::connect(server.addr())?;
    let host = server.addr();
    write!(
        stream,
        "GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{answer}");
    server.stop();
    Ok(())
}
