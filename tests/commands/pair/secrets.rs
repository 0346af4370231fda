//! The server's key: it reaches the server, and nothing else.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::pair::stage::{Ran, Stage};

const KEY: &str = "sk-sentinel-4711-very-secret";

/// A server that complains of the key in its own words, with the key in them.
fn telltale(answer: fn(&str) -> Vec<Vec<u8>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = keys.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || {
                // A client that left is no fault of the server's.
                let _ = serve(stream, &seen, answer);
            });
        }
    });
    (url, keys)
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: fn(&str) -> Vec<Vec<u8>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length, mut key) = (String::new(), 0, String::new());
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => key = value.trim_start_matches("Bearer ").to_owned(),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    seen.lock().unwrap().push(key.clone());
    if first.starts_with("GET /v1/models") {
        let body = r#"{"data":[{"id":"m","max_model_len":8192}]}"#;
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
    }
    for piece in answer(&key) {
        stream.write_all(&piece)?;
        // So that a piece is a read of its own at the other end, most often.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok(())
}

/// A refusal that holds the key in one piece.
fn refusal(key: &str) -> Vec<Vec<u8>> {
    let body = format!(r#"{{"error":{{"message":"no such key: {key}","type":"auth"}}}}"#);
    vec![
        format!(
            "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nX-Your-Key: {key}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    ]
}

/// An event stream with the key in it, in pieces of one byte.
fn trickle(key: &str) -> Vec<Vec<u8>> {
    let events = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{key}\"}}}}]}}\n\n\
         data: {{\"error\":{{\"message\":\"bad key {key}\"}}}}\n\n"
    );
    let mut pieces = vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_vec(),
    ];
    pieces.extend(events.bytes().map(|b| vec![b]));
    pieces
}

fn pair(answer: fn(&str) -> Vec<Vec<u8>>) -> (Stage, Ran) {
    let stage = Stage::with(&["ask-and-tell", "ask", "result"]);
    let (url, keys) = telltale(answer);
    let mut command = stage.flashrig(&[
        "pair",
        "--json",
        "-vv",
        "--agent",
        "mine",
        "--task",
        "tiny",
        "--rounds",
        "1",
        "--keep",
        "--server",
        &url,
        "--model",
        "m",
        "--key-env",
        "MY_KEY",
    ]);
    let ran = Ran::of(command.env("MY_KEY", KEY).output().unwrap());
    let seen = keys.lock().unwrap().clone();
    assert!(
        seen.iter().any(|key| key == KEY),
        "the key did not reach the server: {seen:?}\n{ran:#?}"
    );
    (stage, ran)
}

/// Files below a folder that hold the key.
fn holders(folder: &Path) -> (usize, Vec<String>) {
    let (mut looked_at, mut found) = (0, Vec::new());
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            let (count, more) = holders(&entry.path());
            looked_at += count;
            found.extend(more);
        } else if let Ok(bytes) = fs::read(entry.path()) {
            looked_at += 1;
            if bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    (looked_at, found)
}

fn assert_nowhere(stage: &Stage, ran: &Ran, echo: &str) {
    let (looked_at, found) = holders(&stage.results());
    assert!(looked_at > 10, "{looked_at} files");
    assert_eq!(found, Vec::<String>::new());
    assert!(!ran.stdout.contains(KEY), "{}", ran.stdout);
    assert!(!ran.stderr.contains(KEY), "{}", ran.stderr);
    // The server did say it, and the agent did tell it on: what is missing was taken out.
    let session = &ran.sessions()[0];
    let folder = format!("sessions/{}", session["folder"].as_str().unwrap());
    let reported = stage.result_text(&format!("{folder}/transcript.txt"));
    let masked = echo.replace("KEY", &"*".repeat(KEY.len()));
    assert!(reported.contains(&masked), "{reported}");
}

#[test]
fn a_key_that_the_server_echoes_in_a_refusal_is_nowhere_in_results_or_log() {
    let (stage, ran) = pair(refusal);
    assert_nowhere(&stage, &ran, "no such key: KEY");
}

#[test]
fn a_key_that_the_server_echoes_in_a_stream_byte_by_byte_is_nowhere_in_results_or_log() {
    let (stage, ran) = pair(trickle);
    // Piece by piece, so that only the key itself stands together.
    assert_nowhere(&stage, &ran, "KEY");
}

#[test]
fn a_key_that_the_server_echoes_before_anything_is_measured_is_not_shown() {
    let stage = Stage::with(&["ask"]);
    stage.speak_openai("mine");
    let (url, keys) = telltale(refusal);
    let mut command = stage.flashrig(&[
        "pair",
        "-vv",
        "--agent",
        "mine",
        "--task",
        "tiny",
        "--server",
        &url,
        "--key-env",
        "MY_KEY",
    ]);
    let ran = Ran::of(command.env("MY_KEY", KEY).output().unwrap());
    assert!(keys.lock().unwrap().iter().any(|key| key == KEY));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stderr.contains("no such key: ***"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(KEY), "{}", ran.stderr);
}
