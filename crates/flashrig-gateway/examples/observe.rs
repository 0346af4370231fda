//! Puts a gateway before a server for one session, and reads what it saw. Nobody listens at the
//! server's address, so the client gets an error and the row says why.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::io::{Read, Write};
use std::net::TcpStream;

use flashrig_clock::Origin;
use flashrig_gateway::{GatewayEvent, Limits, ListenConfig, Session};
use flashrig_http::{KeyStyle, Secret, Upstream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ListenConfig {
        label: "example".into(),
        token: Secret::new("session-token"),
        upstream: Upstream::new("http://127.0.0.1:9", None, KeyStyle::ByDialect)?,
        limits: Limits::default(),
        nonce: None,
        gate: None,
        answer_probes: None,
        origin: Origin::now(),
    };
    let session = Session::open(config, |_: GatewayEvent| {}).await?;
    let addr = session.addr();
    let answer = tokio::task::spawn_blocking(move || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(addr)?;
        write!(
            stream,
            "GET /v1/models HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
             Authorization: Bearer session-token\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    })
    .await??;
    println!("{answer}");
    for row in session.close().await {
        println!(
            "{} {}: {:?}, {:?}",
            row.method, row.path, row.status, row.outcome
        );
    }
    Ok(())
}
