//! `flashrig sim` as a process of its own, ended when its handle is dropped.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The server.
pub struct Server {
    child: Child,
    pub url: String,
    pub model: &'static str,
}

impl Server {
    /// One that gives every stream `rate` tokens a second, however many there are.
    pub fn start(rate: u32) -> Self {
        let step_ms = 1000.0 / f64::from(rate);
        let mut child = Command::new(env!("CARGO_BIN_EXE_flashrig"))
            .args(["sim", "--profile", "ideal-batching"])
            .args(["--listen", "127.0.0.1:0"])
            .args(["--set", "max_concurrent=10000"])
            .arg("--set")
            .arg(format!("decode=[{{ batch = 1, step_ms = {step_ms:?} }}]"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.split(' ').find(|word| word.starts_with("http://"));
        Self {
            url: url.expect("the server's address").to_owned(),
            child,
            model: "ideal-sim",
        }
    }

    /// Requests that it works on, by its metrics.
    pub async fn running(&self) -> f64 {
        let host = &self.url["http://".len()..];
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
            .lines()
            .find(|line| line.starts_with("vllm:num_requests_running{"))
            .and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .expect("the server's count")
    }

    /// CPU time so far, to the 10 ms of a clock tick.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Fields are counted after the name, which may hold anything.
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap())
            .sum();
        Duration::from_millis(10 * ticks)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Resident memory of a process.
pub fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|kb| kb.trim().trim_end_matches(" kB").parse().ok())
        .unwrap()
}
