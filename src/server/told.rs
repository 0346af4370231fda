//! What the server tells of itself in its metrics beside how busy it is: requests that it refused,
//! memory in use. Unknown is `None`: few servers tell either.

use std::time::Duration;

use super::Connected;
use super::http::ask;
use super::metrics::MetricNames;
use crate::records::Metric;

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
    let url = format!("{}{}", server.record.url, server.metrics.path);
    match ask(&url, server.key.as_ref(), None, LIMIT).await {
        Ok(answer) if answer.status == 200 => {
            read(&server.metrics, &String::from_utf8_lossy(&answer.body))
        }
        _ => Told::default(),
    }
}

fn read(names: &MetricNames, page: &str) -> Told {
    let whole = |metric| whole(names.value(page, metric));
    Told {
        refused: whole(Metric::Refused),
        memory_bytes: whole(Metric::MemoryBytes),
        peak_bytes: whole(Metric::MemoryPeakBytes),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and negative values are left out"
)]
fn whole(value: Option<f64>) -> Option<u64> {
    value.filter(|v| *v >= 0.0).map(|v| v.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_under_each_servers_names_and_unknown_is_not_0() {
        let page = "mlx_serve:mlx_active_bytes 1.5e3\nvllm:num_requests_running 1\n";
        let told = read(&MetricNames::known(), page);
        assert_eq!(told.memory_bytes, Some(1500));
        assert_eq!(told.refused, None);
    }
}
