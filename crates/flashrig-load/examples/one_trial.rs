//! Sends one small streaming request to a tiny scripted server and prints what came of it.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use flashrig_http::{KeyStyle, Upstream};
use flashrig_load::{Aim, LoadDialect, LoadLimits, Trial, trial};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || serve(&listener));

    let aim = Aim {
        upstream: Upstream::new(&base, None, KeyStyle::ByDialect)?,
        model: "m".to_owned(),
        dialect: LoadDialect::OpenaiChat,
        limits: LoadLimits {
            first_token: Duration::from_secs(10),
            silence: Duration::from_secs(10),
        },
        speed: 1.0,
    };
    let (row, streams) = trial(&aim, Trial::Ready).await;
    println!("outcome        {:?}", row.outcome);
    println!("first token    {:?}", row.clocks.first_token_s);
    println!("output tokens  {:?}", row.output_tokens);
    streams?;
    Ok(())
}

fn serve(listener: &TcpListener) {
    let Some(Ok(mut stream)) = listener.incoming().next() else {
        return;
    };
    let _ = stream.read(&mut [0; 65536]);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(head.as_bytes());
    for frame in [
        r#"{"choices":[{"delta":{"content":"ready"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
        "[DONE]",
    ] {
        let _ = stream.write_all(format!("data: {frame}\n\n").as_bytes());
    }
}
