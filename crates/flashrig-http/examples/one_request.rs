//! Asks a tiny local server for its models: once as a small request, once as a measured one.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use flashrig_clock::Stamp;
use flashrig_http::{KeyStyle, Pool, Secret, Upstream, ask};
use http_body_util::Full;
use hyper::Request;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || serve(&listener));

    let key = Secret::new("sk-example-1234");
    let upstream = Upstream::new(&base, Some(key), KeyStyle::Bearer)?;
    let answer = ask(&upstream, "/v1/models", None, Duration::from_secs(10)).await?;
    println!("{} {}", answer.status, answer.label());

    let request = Request::get(upstream.target("/v1/models", None)?)
        .header("host", upstream.authority())
        .body(Full::<Bytes>::default())?;
    let pool = Pool::new(upstream);
    let sent = Stamp::now();
    let (response, mut connection) = pool.send(request, None, |_| {}).await?;
    let head = connection.last_read().since(sent);
    let body = connection.read_whole(response, 1 << 20).await;
    println!(
        "head after {head:?}, {} bytes",
        body.map_err(|e| e.to_string())?.len()
    );
    pool.keep(connection);
    Ok(())
}

/// Repeats the key it was sent, as some servers do; it is covered before anyone sees it.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let _ = stream.read(&mut [0; 4096]);
        let body = "{\"echo\":\"sk-example-1234\"}";
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}
