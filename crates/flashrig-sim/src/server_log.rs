//! The server's log, in the manner of mlx-serve's: what an operator would find there.

use std::fmt::Arguments;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::memory::Shortage;
use super::profile::SimProfile;

/// Receives each line.
pub type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// The open log, or none; shared by those who refuse and those who serve.
#[derive(Clone, Default)]
pub struct ServerLog {
    file: Option<Arc<Mutex<File>>>,
    listener: Option<Listener>,
}

impl std::fmt::Debug for ServerLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut log = f.debug_struct("ServerLog");
        log.field("file", &self.file);
        log.finish_non_exhaustive()
    }
}

/// A request that was served.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Those that came from the cache.
    pub cached_tokens: u64,
    /// Tokens of the answer.
    pub tokens: u32,
    /// Whether it was streamed.
    pub streamed: bool,
    /// Simulated seconds of prefill.
    pub prefill_s: f64,
    /// Simulated seconds of decoding.
    pub decode_s: f64,
    /// Whether a fault ended it.
    pub broken: bool,
}

impl ServerLog {
    pub(super) fn create(path: Option<&Path>, listener: Option<Listener>) -> std::io::Result<Self> {
        let file = path.map(File::create).transpose()?;
        Ok(Self {
            file: file.map(|file| Arc::new(Mutex::new(file))),
            listener,
        })
    }

    /// The first lines: what the server is set to.
    pub fn boot(&self, profile: &SimProfile, address: std::net::SocketAddr) {
        let table = profile.timing.table();
        let model = &profile.model;
        self.line(format_args!(
            "flashrig-sim {} (profile {}, model {model}) listening on http://{address}",
            env!("CARGO_PKG_VERSION"),
            profile.name,
        ));
        self.line(format_args!(
            "Concurrency: --max-concurrent={}, batched decode on, --prefill-decode-share={}, --prefill-chunk={}",
            table.max_concurrent, table.prefill_decode_share, table.prefill_chunk_tokens,
        ));
        let size = |size: Option<super::profile::ByteSize>| {
            size.map_or_else(|| "unlimited".to_owned(), |size| size.to_string())
        };
        self.line(format_args!(
            "Memory: total {}, weights {}, --prefix-cache-mem={}, --prefix-cache-disk={}, KV {} bits, --ctx-size={}",
            size(table.memory),
            table.weights,
            table.cache_ram.map_or_else(
                || format!("{} tokens", table.cache_tokens.unwrap_or(0)),
                |ram| ram.to_string()
            ),
            table.cache_disk,
            table.kv_bits,
            profile.context,
        ));
    }

    /// A request was served.
    pub fn served(&self, served: &Served) {
        if self.file.is_none() && self.listener.is_none() {
            return;
        }
        let Served {
            prompt_tokens,
            cached_tokens,
            tokens,
            ..
        } = *served;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let prefill = rate((prompt_tokens - cached_tokens) as f64, served.prefill_s);
        let decode = rate(f64::from(tokens.saturating_sub(1)), served.decode_s);
        self.line(format_args!(
            "<- {prompt_tokens}+{tokens} tokens{} [prefill: {prefill} tok/s ({cached_tokens} cached / {prompt_tokens} total), decode: {decode} tok/s] [{}]",
            if served.streamed { " streamed" } else { "" },
            if served.broken { "error" } else { "stop" },
        ));
    }

    /// A request was refused for lack of memory.
    pub fn no_memory(&self, prompt_tokens: u64, shortage: Shortage) {
        self.line(format_args!(
            "prompt {prompt_tokens} tokens needs ~{}MB (KV+working+margin), ~{}MB available — rejecting",
            shortage.needed >> 20,
            shortage.available >> 20,
        ));
    }

    /// A request was refused for another reason.
    pub fn refused(&self, reason: &str) {
        self.line(format_args!("rejecting: {reason}"));
    }

    fn line(&self, line: Arguments<'_>) {
        if let Some(listener) = &self.listener {
            listener(&line.to_string());
        }
        let Some(file) = &self.file else { return };
        let mut file = file.lock();
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!(%error, "the simulated server's own log cannot be written");
        }
    }
}

/// A rate as text; what took no time has none.
fn rate(tokens: f64, seconds: f64) -> String {
    if seconds > 0.0 {
        format!("{:.1}", tokens / seconds)
    } else {
        "-".to_owned()
    }
}
