//! Runs one synthetic session against a simulated server: a cold turn, then two warm ones.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::time::Duration;

use flashrig_clock::Origin;
use flashrig_http::{KeyStyle, Upstream};
use flashrig_load::{Aim, Client, LoadDialect, LoadLimits, Prepared, SessionPlan, calibrate, salt};
use flashrig_sim::{Faults, Sim, SimConfig, SimProfile, SimTable};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table: SimTable = serde_json::from_value(serde_json::json!({
        "max_concurrent": 4,
        "prefill_s_per_token": 3e-4,
        "prefill_s_per_token_squared": 1e-9,
        "cache_tokens": 1_000_000,
        "decode": [{ "batch": 1, "step_ms": 15.2 }],
    }))?;
    let speed = 10.0;
    let server = Sim::start(SimConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        profile: SimProfile::new("example", "example-model", 131_072, &table)?,
        speed,
        scripts: Vec::new(),
        seed: 1,
        log: None,
        server_log: None,
        faults: Faults::default(),
    })?;
    let limit = Duration::from_secs(60);
    let aim = Aim {
        upstream: Upstream::new(&server.base_url(), None, KeyStyle::ByDialect)?,
        model: "example-model".into(),
        dialect: LoadDialect::OpenaiChat,
        limits: LoadLimits::each(limit),
        speed,
    };
    let client = Client::new(aim, Origin::now());
    let calibration = calibrate(&client, 1).await?;
    let plan = SessionPlan {
        id: "s1".into(),
        context_tokens: 4096,
        checks: 2,
        answer_tokens: 16,
        seed: 1,
        salt: salt(&[1]),
        shared_prefix: false,
    };
    let mut session = Prepared::new(&client, &calibration, plan)?;
    session.cold(&client).await;
    for turn in 1..=2 {
        session.warm(&client, turn).await;
    }
    for row in client.take_rows() {
        let clocks = &row.attempt.clocks;
        println!(
            "request {}: first token at {:?}",
            row.attempt.number, clocks.first_token_s
        );
    }
    server.stop();
    Ok(())
}
