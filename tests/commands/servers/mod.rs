//! `flashrig servers` as it is typed: against the simulated server, and against things that are no
//! servers or half ones.

mod profiles;
mod reported;
mod trouble;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}

/// `flashrig servers` in `project`, with nothing of the environment that tests run in.
fn servers_in(project: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .arg("servers")
        .args(args)
        .env_clear()
        .current_dir(project)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn servers(args: &[&str]) -> Ran {
    servers_in(TempDir::new().unwrap().path(), args)
}

/// A project with one server profile.
fn project(name: &str, profile: &str) -> TempDir {
    let project = TempDir::new().unwrap();
    let folder = project.path().join("harness/servers");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.toml")), profile).unwrap();
    project
}

/// What a stub does with a request.
enum Reply {
    /// An answer, and the connection's end.
    Whole(String),
    /// The beginning of one, and then nothing for as long as the client stays.
    Begun(String),
}

fn answer(status: &str, content_type: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Whole(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    ))
}

fn no_route() -> Reply {
    answer(
        "404 Not Found",
        "application/json",
        r#"{"error":"no such route"}"#,
    )
}

fn one_model() -> Reply {
    let list = r#"{"data":[{"id":"m","max_model_len":4096}]}"#;
    answer("200 OK", "application/json", list)
}

/// A server that answers by the first line of a request, each connection on its own.
fn stub(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let reply = Arc::new(reply);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let reply = Arc::clone(&reply);
            std::thread::spawn(move || serve(stream.unwrap(), &*reply));
        }
    });
    url
}

fn serve(mut stream: TcpStream, reply: &dyn Fn(&str) -> Reply) {
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    // Bodies end with a brace.
    while !(seen.ends_with(b"}") || seen.starts_with(b"GET") && seen.ends_with(b"\r\n\r\n")) {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(n) => seen.extend_from_slice(&bytes[..n]),
        }
    }
    let head = String::from_utf8_lossy(&seen);
    match reply(head.lines().next().unwrap_or_default()) {
        Reply::Whole(answer) => {
            let _ = stream.write_all(answer.as_bytes());
        }
        Reply::Begun(beginning) => {
            let _ = stream.write_all(beginning.as_bytes());
            // Until the client leaves.
            while matches!(stream.read(&mut bytes), Ok(n) if n > 0) {}
        }
    }
}
