//! The gateway as a process of its own, so that its memory and its CPU can be told apart. It listens
//! as `pair` has it listen; when its standard input closes, it prints its rows and ends.

use std::io::{Read, Write};

use flashrig_clock::Origin;
use flashrig_gateway::{EventLoop, Limits, ListenConfig, Session};
use flashrig_http::{KeyStyle, Secret, Upstream};

use super::client::TOKEN;

pub fn run(upstream: &str) {
    let event_loop = EventLoop::start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let origin = Origin::now();
    let config = ListenConfig {
        label: "bench".to_owned(),
        token: Secret::new(TOKEN),
        upstream: Upstream::new(&format!("http://{upstream}"), None, KeyStyle::ByDialect).unwrap(),
        limits: Limits::default(),
        gate: None,
        answer_probes: None,
        nonce: None,
        origin: origin.clone(),
    };
    let session = runtime
        .block_on(event_loop.run(Session::open(config, |_| {})))
        .unwrap();
    println!("{} {}", session.addr(), origin.stamp.0);
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let rows = runtime.block_on(session.close());
    let mut out = std::io::stdout().lock();
    for row in rows {
        serde_json::to_writer(&mut out, &row).unwrap();
        out.write_all(b"\n").unwrap();
    }
}
