//! Starts a simulated server, sends it one streaming request, and prints TTFT and usage.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use flashrig_sim::{Faults, Sim, SimConfig, SimProfile, SimTable};
use serde_json::{Value, json};

/// Simulated seconds in one second of the clock.
const SPEED: f64 = 10.0;

fn main() -> Result<(), Box<dyn Error>> {
    let table: SimTable = toml::from_str(
        "max_concurrent = 4\ncache_tokens = 200_000\nprefill_s_per_token = 3e-4\n\
         prefill_s_per_token_squared = 1e-9\n\
         decode = [{ batch = 1, step_ms = 15.2 }]",
    )?;
    let server = Sim::start(SimConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        profile: SimProfile::new("example", "example-model", 131_072, &table)?,
        speed: SPEED,
        scripts: Vec::new(),
        seed: 1,
        log: None,
        server_log: None,
        faults: Faults::default(),
    })?;

    let body = json!({
        "model": "example-model", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "What is prefill? ".repeat(1000)}],
    })
    .to_string();
    let mut stream = TcpStream::connect(server.addr())?;
    let sent = Instant::now();
    // HTTP/1.0: the answer comes without chunks.
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut first_token = None;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let Some(chunk) = line
            .strip_prefix("data: ")
            .and_then(|data| serde_json::from_str::<Value>(data).ok())
        else {
            continue;
        };
        let text = chunk["choices"][0]["delta"]["content"].as_str();
        if text.is_some_and(|text| !text.is_empty()) && first_token.is_none() {
            first_token = Some(sent.elapsed().as_secs_f64());
        }
        if chunk["usage"].is_object() {
            println!("usage: {}", chunk["usage"]);
        }
    }
    let ttft = first_token.ok_or("the answer has no text")?;
    println!(
        "TTFT: {ttft:.3} s, which is {:.2} s of the simulated server's time",
        ttft * SPEED
    );
    server.stop();
    Ok(())
}
