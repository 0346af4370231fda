//! What the server tells of itself in its metrics beside how busy it is: requests that it refused,
//! memory in use. Unknown is `None`: few servers tell either.

use std::time::Duration;

use super::Connected;
use super::http::ask;

/// Counters of refused requests: that of the embedded server.
const REFUSED: [&str; 1] = ["flashrig_sim:requests_refused_total"];
/// Gauges of memory in use, in bytes: that of mlx-serve, which the embedded server has too.
const MEMORY: [&str; 1] = ["mlx_serve:mlx_active_bytes"];
/// The most memory that was in use since the server started: that of the embedded server.
const PEAK: [&str; 1] = ["flashrig_sim:memory_peak_bytes"];
const LIMIT: Duration = Duration::from_secs(5);

/// What the metrics said at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Requests refused since the server started.
    pub refused: Option<u64>,
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// The most of it since the server started.
    pub peak_bytes: Option<u64>,
}

/// Reads the server's metrics; a server without any tells nothing.
pub async fn told(server: &Connected) -> Told {
    let url = format!("{}/metrics", server.record.url);
    match ask(&url, server.key.as_ref(), None, LIMIT).await {
        Ok(answer) if answer.status == 200 => read(&String::from_utf8_lossy(&answer.body)),
        _ => Told::default(),
    }
}

fn read(metrics: &str) -> Told {
    Told {
        refused: sum(metrics, &REFUSED),
        memory_bytes: sum(metrics, &MEMORY),
        peak_bytes: sum(metrics, &PEAK),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and negative values are left out"
)]
fn sum(metrics: &str, names: &[&str]) -> Option<u64> {
    super::idle::sum(metrics, names)
        .filter(|v| *v >= 0.0)
        .map(|v| v.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_under_each_servers_names_and_unknown_is_not_0() {
        let told = read("mlx_serve:mlx_active_bytes 1.5e3\nvllm:num_requests_running 1\n");
        assert_eq!(told.memory_bytes, Some(1500));
        assert_eq!(told.refused, None);
    }
}
