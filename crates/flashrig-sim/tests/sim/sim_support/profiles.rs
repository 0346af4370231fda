//! Servers of the built-in profiles, with their logs.

use std::path::PathBuf;

use flashrig_sim::truth::read::TruthRead;
use flashrig_sim::{Sim, SimConfig, SimHandle, SimProfile};
use flashrig_testkit::profile::simulated;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{config, post_json};

pub const FACT: &str = "Fact K0317: the code is QX-48213.\n";
pub const QUESTION: &str = "What is the code of fact K0317? Answer with the code only.";

/// A server of a built-in profile with its logs.
pub struct Server {
    pub sim: SimHandle,
    pub model: String,
    pub log: PathBuf,
    pub server_log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn new(name: &str, speed: f64, changes: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let found = simulated(name, changes);
        let table = found.table.try_into().unwrap();
        let profile = SimProfile::new(name, found.model, found.context, &table).unwrap();
        Self::of(profile, speed, folder)
    }

    pub fn of(profile: SimProfile, speed: f64, folder: tempfile::TempDir) -> Self {
        let model = profile.model.clone();
        let (log, server_log) = (folder.path().join("truth.jsonl"), folder.path().join("log"));
        let sim = Sim::start(SimConfig {
            profile,
            speed,
            log: Some(log.clone()),
            server_log: Some(server_log.clone()),
            ..config(vec![])
        })
        .unwrap();
        Self {
            sim,
            model,
            log,
            server_log,
            _folder: folder,
        }
    }

    pub fn chat(&self, user: &str, max_tokens: u64) -> Value {
        json!({"model": self.model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": user}]})
    }

    pub async fn ask(&self, body: &Value) -> (StatusCode, Value) {
        post_json(&self.sim, "/v1/chat/completions", body).await
    }

    pub fn truth(&self) -> TruthRead {
        TruthRead::load(&self.log).unwrap()
    }
}

pub fn text_of(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

pub fn prompt(tokens: usize) -> String {
    "abc ".repeat(tokens)
}
