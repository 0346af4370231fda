//! What the gateway adds to the first byte: the same request to the same server, direct and
//! through the gateway, alternating, so that the machine's noise falls on both alike.
//!
//! Run with `cargo bench --bench gateway`. The request has the size of a coding agent's.

#![expect(dead_code, reason = "the benchmark uses a part of the tests' support")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run should fail, and it reports to the terminal"
)]

#[path = "../tests/gateway/gateway_rig.rs"]
mod gateway_rig;
use flashrig_testkit::upstream;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flashrig_record::Outcome;
use gateway_rig::{CHAT, Rig, STOP, Setup, post};
use upstream::{Peer, Upstream};

const ROUNDS: u32 = 500;
const BODY_BYTES: usize = 50_000;

/// Time from the first byte sent to the first byte of the stream's first event.
async fn first_byte(addr: SocketAddr, request: &[u8]) -> Duration {
    let mut client = Peer::connect(addr).await;
    let start = Instant::now();
    client.send(request).await;
    client.head().await.expect("no answer");
    client.chunk().await.expect("no first chunk");
    let elapsed = start.elapsed();
    client.chunks_until("[DONE]").await;
    elapsed
}

/// Answers every connection's requests at once.
async fn serve(server: Upstream) {
    loop {
        let mut peer = server.accept().await;
        tokio::spawn(async move {
            while let Some(head) = peer.head().await {
                peer.body(&head).await;
                peer.start_stream().await;
                peer.send_chunk(gateway_rig::delta("{\"content\":\"hi\"}"))
                    .await;
                peer.send_chunk(STOP).await;
                peer.end_stream().await;
            }
        });
    }
}

fn quantile(sorted: &[Duration], share: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few hundred values"
    )]
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[at].as_secs_f64() * 1e6
}

#[tokio::main]
async fn main() {
    let server = Upstream::bind().await;
    let url = server.url();
    let direct_addr = url.trim_start_matches("http://").parse().unwrap();
    tokio::spawn(serve(server));
    let rig = Rig::with(Setup {
        url: Some(url),
        ..Setup::default()
    })
    .await;
    let filler = "x".repeat(BODY_BYTES);
    let body = format!(
        "{{\"model\":\"m\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{filler}\"}}]}}"
    );
    let request = post(CHAT, body);
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 20 {
        let d = first_byte(direct_addr, &request).await;
        let t = first_byte(rig.session.addr(), &request).await;
        // The first ones warm up.
        if round >= 20 {
            direct.push(d);
            through.push(t);
        }
    }
    direct.sort_unstable();
    through.sort_unstable();
    println!("first byte, {ROUNDS} requests of {BODY_BYTES} bytes each way, microseconds");
    println!("{:<10}{:>10}{:>10}", "", "median", "p99");
    for (name, times) in [("direct", &direct), ("gateway", &through)] {
        println!(
            "{name:<10}{:>10.0}{:>10.0}",
            quantile(times, 0.5),
            quantile(times, 0.99)
        );
    }
    let added = |share| quantile(&through, share) - quantile(&direct, share);
    println!("{:<10}{:>10.0}{:>10.0}", "added", added(0.5), added(0.99));
    let rows = rig.session.close().await;
    assert!(
        rows.iter().all(|row| row.outcome == Outcome::Complete),
        "a stream was lost"
    );
}
