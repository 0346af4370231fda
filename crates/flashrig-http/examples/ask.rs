//! Asks a server for its models, with a key that no error and no log shows.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use flashrig_http::{Secret, ask};

/// A server that answers one request.
fn server() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let _ = stream.read(&mut [0; 4096])?;
        let body = r#"{"data":[{"id":"example-model"}]}"#;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    });
    Ok(addr)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = format!("http://{}/v1/models", server()?);
    let key = Secret::new("sk-example");
    let answer = ask(&url, Some(&key), None, Duration::from_secs(5)).await?;
    println!("{}: {}", answer.status, answer.label());
    Ok(())
}
