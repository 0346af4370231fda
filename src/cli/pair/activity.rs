//! What a session is activity now, in a few words. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use flashrig_clock::Stamp;
use flashrig_gateway::{Generated, RequestProgress};

/// What is known of a running session.
#[derive(Clone, Debug)]
pub struct Activity {
    started: Stamp,
    turn: u64,
    open: BTreeMap<u32, Open>,
    idle_since: Stamp,
    tool: Option<String>,
}

#[derive(Clone, Debug)]
struct Open {
    side: bool,
    at_gate: bool,
    asked: Stamp,
    progress: Arc<RequestProgress>,
}

impl Activity {
    /// A session that was just let go.
    pub fn new(started: Stamp) -> Self {
        Self {
            started,
            turn: 0,
            open: BTreeMap::new(),
            idle_since: started,
            tool: None,
        }
    }

    /// A request is held back by the gate.
    pub fn held(&mut self, number: u32, side: bool, progress: Arc<RequestProgress>, at: Stamp) {
        self.opened(number, side, true, progress, at);
    }

    /// A request went out.
    pub fn asked(&mut self, number: u32, side: bool, progress: Arc<RequestProgress>, at: Stamp) {
        self.opened(number, side, false, progress, at);
    }

    fn opened(
        &mut self,
        number: u32,
        side: bool,
        at_gate: bool,
        progress: Arc<RequestProgress>,
        at: Stamp,
    ) {
        self.tool = None;
        if !side && !self.open.contains_key(&number) {
            self.turn += 1;
        }
        self.open.insert(
            number,
            Open {
                side,
                at_gate,
                asked: at,
                progress,
            },
        );
    }

    /// Its answer ended.
    pub fn answered(&mut self, number: u32, at: Stamp) {
        self.open.remove(&number);
        self.idle_since = at;
    }

    /// The transcript told of a turn; the gateway has counted its request already.
    pub fn turn(&mut self) {
        self.turn = self.turn.max(1);
    }

    /// The transcript told of a tool call.
    pub fn tool(&mut self, detail: Option<String>) {
        self.tool = detail;
    }

    /// What it is activity, e.g. `turn 3, 21 s: waiting 12 s for the first token`.
    pub fn label(&self, now: Stamp) -> String {
        let total = now.since(self.started).as_secs();
        let main = self
            .open
            .values()
            .find(|o| !o.side)
            .or_else(|| self.open.values().next());
        let what = match main {
            Some(open) => {
                let side = if open.side { " (side request)" } else { "" };
                match open.progress.generated() {
                    None if open.at_gate => {
                        let waited = now.since(open.asked).as_secs();
                        format!("held at the gate for {waited} s{side}")
                    }
                    None => {
                        let waited = now.since(open.asked).as_secs();
                        format!("waiting {waited} s for the first token{side}")
                    }
                    Some(generated) => format!("{}{side}", rate(generated, now)),
                }
            }
            None if self.turn == 0 => "starting".to_owned(),
            None => {
                let since = now.since(self.idle_since).as_secs();
                let tool = self.tool.as_deref().unwrap_or("its tools");
                let short: String = tool.chars().take(60).collect();
                if since == 0 {
                    format!("running {short}")
                } else {
                    format!("running {short} ({since} s)")
                }
            }
        };
        format!("turn {}, {total} s: {what}", self.turn)
    }
}

fn rate(generated: Generated, now: Stamp) -> String {
    match generated.events_per_s(now) {
        Some(rate) if rate > 0.0 => format!("{rate:.0} events/s"),
        _ => "generating".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(ms: u64) -> Stamp {
        Stamp(0) + Duration::from_millis(ms)
    }

    fn sent(at: Stamp) -> Arc<RequestProgress> {
        Arc::new(RequestProgress::new(at))
    }

    #[test]
    fn the_label_follows_a_turn_from_waiting_over_decoding_to_tools() {
        let mut activity = Activity::new(at(0));
        assert_eq!(activity.label(at(1000)), "turn 0, 1 s: starting");
        let progress = sent(at(2000));
        activity.asked(1, false, progress.clone(), at(2000));
        assert_eq!(
            activity.label(at(14_000)),
            "turn 1, 14 s: waiting 12 s for the first token"
        );
        progress.record(1, at(15_000));
        progress.record(39, at(16_000));
        assert_eq!(activity.label(at(16_000)), "turn 1, 16 s: 38 events/s");
        activity.tool(Some("Bash cargo test".into()));
        activity.answered(1, at(17_000));
        assert_eq!(
            activity.label(at(20_000)),
            "turn 1, 20 s: running Bash cargo test (3 s)"
        );
    }

    #[test]
    fn a_request_at_the_gate_is_one_turn_before_and_after_it_is_let_in() {
        let mut activity = Activity::new(at(0));
        activity.held(1, false, sent(at(0)), at(0));
        assert_eq!(
            activity.label(at(5000)),
            "turn 1, 5 s: held at the gate for 5 s"
        );
        activity.asked(1, false, sent(at(5000)), at(5000));
        assert_eq!(
            activity.label(at(6000)),
            "turn 1, 6 s: waiting 1 s for the first token"
        );
    }

    #[test]
    fn a_main_request_is_shown_before_a_side_request() {
        let mut activity = Activity::new(at(0));
        activity.asked(1, true, sent(at(0)), at(0));
        assert_eq!(
            activity.label(at(3000)),
            "turn 0, 3 s: waiting 3 s for the first token (side request)"
        );
        activity.asked(2, false, sent(at(1000)), at(1000));
        assert_eq!(
            activity.label(at(3000)),
            "turn 1, 3 s: waiting 2 s for the first token"
        );
    }
}
