//! The scripted agent: this test binary, run as a program, does what its arguments say.
//!
//! It speaks OpenAI chat completions over plain TCP, offers one tool (so that its requests are
//! main requests), and sends the whole conversation with every request, as real agents do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flashrig_testkit::waiting::wait_until;
use serde_json::{Value, json};

/// The words that make this test binary play an agent; what follows are its steps.
pub const PLAY: [&str; 4] = ["pair::agent::play", "--exact", "--ignored", "--nocapture"];

/// Instructions long enough to fill several blocks of a server's prompt cache.
const SENTENCE: &str = "You are a careful programmer who changes as little as possible. ";

/// Not a test: the agent.
#[test]
#[ignore = "a role played by this binary for other tests"]
fn play() {
    let prompt = std::env::var("FLASHRIG_PROMPT").unwrap_or_default();
    let mut agent = Agent {
        messages: vec![
            json!({"role": "system", "content": SENTENCE.repeat(40)}),
            json!({"role": "user", "content": prompt}),
        ],
    };
    for step in std::env::args().skip_while(|a| a != PLAY[3]).skip(1) {
        let (word, rest) = step.split_once(' ').unwrap_or((&step, ""));
        agent.step(word, rest);
    }
    std::process::exit(0);
}

struct Agent {
    messages: Vec<Value>,
}

impl Agent {
    fn step(&mut self, word: &str, rest: &str) {
        match word {
            // A main request; a failed one is told on standard error, and life goes on.
            "ask" => match self.request(true) {
                Ok(answer) => {
                    self.messages
                        .push(json!({"role": "assistant", "content": answer}));
                    self.messages
                        .push(json!({"role": "user", "content": "Go on."}));
                }
                Err(why) => eprintln!("request failed: {why}"),
            },
            // A main request that is sent again while its first is being answered.
            "ask-twice" => {
                let mut first = begin("POST /v1/chat/completions", &self.body(true)).unwrap();
                let mut seen = Vec::new();
                while !seen.windows(5).any(|window| window == b"data:") {
                    let mut piece = [0; 512];
                    let length = first.read(&mut piece).unwrap();
                    assert!(length > 0, "no answer began");
                    seen.extend_from_slice(&piece[..length]);
                }
                self.step("ask", "");
            }
            // A request to any route, e.g. `probe HEAD /`.
            "probe" => {
                let mut stream = begin(rest, "").unwrap();
                stream.read_to_end(&mut Vec::new()).unwrap();
            }
            // What is said from now on begins with these words, before all that was said.
            "begin" => {
                let message = format!("{rest} {}", SENTENCE.repeat(40));
                self.messages[0]["content"] = message.into();
            }
            // Lets its token slip, as an agent does that prints its environment.
            "tell-token" => {
                let token = std::env::var("FLASHRIG_TOKEN").unwrap();
                let message = format!("my token is {token}");
                self.messages
                    .push(json!({"role": "user", "content": message}));
            }
            // A request beside the thread.
            "side" => {
                self.request(false).unwrap();
            }
            // Posts the prompt through the proxy of the environment, as libraries do: METHOD and
            // address. Tells the answer's status and how long it took.
            "leave" => {
                let (method, target) = rest.split_once(' ').unwrap();
                let variable = if method == "CONNECT" {
                    "HTTPS_PROXY"
                } else {
                    "HTTP_PROXY"
                };
                let proxy = std::env::var(variable).unwrap();
                let begun = std::time::Instant::now();
                let answer = through(&proxy, method, target, &self.messages.len().to_string());
                let took = begun.elapsed().as_secs_f64() * 1e3;
                let status = answer.split("\r\n").next().unwrap();
                say(format!("{method} {target}: {status} after {took:.1} ms").as_bytes());
            }
            // A main request whose answer, whole as it came, goes wherever an agent may put it.
            "ask-and-tell" => {
                let body = json!({"model": "m", "messages": self.messages, "tools": [{}]});
                let answer = post(&body.to_string()).unwrap();
                say(answer.as_bytes());
                eprintln!("{answer}");
                std::fs::write("told.txt", &answer).unwrap();
                let event = json!({"type": "error", "message": answer});
                say(event.to_string().as_bytes());
                self.messages
                    .push(json!({"role": "user", "content": answer}));
            }
            "stdin" => {
                std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            }
            "write" => {
                let (path, text) = rest.split_once(' ').unwrap();
                std::fs::write(path, format!("{text}\n")).unwrap();
            }
            "sh" => {
                let status = Command::new("/bin/sh").args(["-ec", rest]).status();
                assert!(status.unwrap().success(), "{rest}");
            }
            "say" => say(rest.as_bytes()),
            "result" => say(br#"{"type":"result"}"#),
            "noise" => say(&vec![b'x'; rest.parse().unwrap()]),
            "hang" => hang(),
            "exit" => std::process::exit(rest.parse().unwrap()),
            "wait-for" => wait_for(Path::new(rest)),
            // A listener that has left the session's process group and ignores TERM; its port is
            // in the named file.
            "leave-listener" => {
                let me = std::env::current_exe().unwrap();
                let message: Vec<String> = PLAY.iter().map(|w| (*w).to_owned()).collect();
                let command = format!(
                    "trap '' TERM HUP INT; setsid '{}' {} 'listen {rest}' &",
                    me.display(),
                    message.join(" ")
                );
                self.step("sh", &command);
                wait_for(Path::new(rest));
            }
            "listen" => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let port = listener.local_addr().unwrap().port();
                std::fs::write("port.new", port.to_string()).unwrap();
                std::fs::rename("port.new", rest).unwrap();
                hang();
            }
            // For a check: nobody listens on the port in the named file any more.
            "port-free" => {
                let port: u16 = std::fs::read_to_string(rest).unwrap().parse().unwrap();
                let error = TcpStream::connect(("127.0.0.1", port)).unwrap_err();
                say(format!("port is free: {error}").as_bytes());
            }
            _ => panic!("no such step: {word}"),
        }
    }

    fn body(&self, main: bool) -> String {
        let mut body = json!({
            "model": std::env::var("FLASHRIG_MODEL").unwrap(),
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": if main { json!(self.messages) } else {
                json!([{"role": "user", "content": "Give this conversation a title."}])
            },
        });
        if main {
            body["tools"] = json!([{"type": "function", "function": {
                "name": "bash",
                "description": "Runs a command",
                "parameters": {"type": "object", "required": ["command"],
                    "properties": {"command": {"type": "string"}}},
            }}]);
        }
        body.to_string()
    }

    fn request(&self, main: bool) -> Result<String, String> {
        let answer = post(&self.body(main)).map_err(|e| e.to_string())?;
        let status = answer.split(' ').nth(1).unwrap_or("no status").to_owned();
        if status != "200" {
            return Err(format!("status {status}"));
        }
        if !answer.contains("data: [DONE]") || answer.contains("\"error\"") {
            return Err("the answer broke off".to_owned());
        }
        Ok(contents(&answer))
    }
}

fn wait_for(file: &Path) {
    wait_until("the file is there", || file.exists());
}

/// Sends a request, `line` being its method and path.
fn begin(line: &str, body: &str) -> std::io::Result<TcpStream> {
    let base = std::env::var("FLASHRIG_BASE_URL").unwrap();
    let address = base.strip_prefix("http://").unwrap();
    let token = std::env::var("FLASHRIG_TOKEN").unwrap();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(stream)
}

fn post(body: &str) -> std::io::Result<String> {
    let mut stream = begin("POST /v1/chat/completions", body)?;
    let mut answer = Vec::new();
    // A stream that is reset has still said what it has said.
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.is_empty() {
        ended?;
    }
    Ok(answer)
}

fn through(proxy: &str, method: &str, target: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(proxy.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The text of an event stream, its tool calls left out.
fn contents(answer: &str) -> String {
    answer
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|event| {
            let text = event.pointer("/choices/0/delta/content")?.as_str()?;
            Some(text.to_owned())
        })
        .collect()
}

fn say(line: &[u8]) {
    // Not print!, which the test harness may capture.
    let mut out = std::io::stdout();
    out.write_all(line).unwrap();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

fn hang() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
