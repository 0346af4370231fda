//! The processes beside the clients: the paced server, the gateway, nginx. Each is ended when its
//! handle is dropped. What they used is read from `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process of this benchmark.
pub struct Process {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    pub addr: SocketAddr,
    /// The gateway's origin, in nanoseconds of the shared clock.
    pub origin: u64,
    _dir: Option<tempfile::TempDir>,
}

impl Process {
    /// This program in another role, which prints its address.
    pub fn role(args: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let mut message = line.split_whitespace();
        Self {
            addr: message.next().unwrap().parse().unwrap(),
            origin: message.next().map_or(0, |word| word.parse().unwrap()),
            child,
            output: Some(output),
            _dir: None,
        }
    }

    /// nginx before `upstream`, set as is usual for streams; `None` when it is not installed.
    pub fn nginx(upstream: SocketAddr, keeps_connections: bool) -> Option<Self> {
        let program = [
            "/usr/sbin/nginx",
            "/usr/local/bin/nginx",
            "/opt/homebrew/bin/nginx",
        ]
        .into_iter()
        .find(|path| fs::exists(path).unwrap_or(false))?;
        let dir = tempfile::TempDir::new().unwrap();
        let at = dir.path().display();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        let user = if nix::unistd::geteuid().is_root() {
            "user root;"
        } else {
            ""
        };
        let keepalive = if keeps_connections {
            "keepalive 64;"
        } else {
            ""
        };
        let config = format!(
            "{user} worker_processes auto; daemon off; pid {at}/pid; error_log {at}/error.log;
             worker_rlimit_nofile 16384;
             events {{ worker_connections 8192; }}
             http {{
               access_log off; keepalive_requests 100000;
               client_max_body_size 64m; client_body_buffer_size 1m;
               client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/f;
               uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
               upstream load {{ server {upstream}; {keepalive} }}
               server {{
                 listen {addr};
                 location / {{
                   proxy_pass http://load; proxy_http_version 1.1; proxy_set_header Connection \"\";
                   proxy_buffering off; proxy_read_timeout 600s;
                 }}
               }}
             }}"
        );
        let file = dir.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let child = Command::new(program)
            .arg("-e")
            .arg(dir.path().join("error.log"))
            .arg("-p")
            .arg(dir.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let process = Self {
            child,
            output: None,
            addr,
            origin: 0,
            _dir: Some(dir),
        };
        let start = Instant::now();
        while TcpStream::connect(addr).is_err() {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "nginx does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(process)
    }

    /// Closes the process's standard input and reads what it has left to say.
    pub fn finish(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut rest).unwrap();
        }
        rest
    }

    /// What it and its workers have used so far.
    pub fn usage(&self) -> Usage {
        let pid = self.child.id();
        let mut whole = Usage::default();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
                continue;
            };
            let name = entry.file_name();
            // Fields are counted after the name, which may hold anything.
            let Some((_, rest)) = stat.rsplit_once(')') else {
                continue;
            };
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ours = name.to_str() == Some(&pid.to_string()) || fields[1] == pid.to_string();
            if !ours {
                continue;
            }
            let ticks: u64 = fields[11..13]
                .iter()
                .filter_map(|t| t.parse::<u64>().ok())
                .sum();
            whole.cpu += Duration::from_millis(10 * ticks);
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            whole.resident_kb += resident
                .and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().ok())
                .unwrap_or(0);
        }
        whole
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // By signal and not by force: nginx's master has to take its workers along.
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}

/// CPU time and memory.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// To the 10 ms of a clock tick.
    pub cpu: Duration,
    pub resident_kb: u64,
}
