//! Stands beside the sessions of an arm: ends all of them at once when the server is lost, and any
//! whose request waits for its first token beyond the limit. An agent left alone would try again
//! for minutes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::run::shared::server_life::{Lost, Missed, lost};
use flashrig_clock::Stamp;
use flashrig_gateway::GatewayEvent;
use flashrig_record::{Outcome, ServerTrouble};
use flashrig_server::{Connected, Served, pulse, stall};

/// How often it is looked who waits too long.
const LOOK: Duration = Duration::from_millis(200);

/// The sentry of one arm.
#[derive(Debug)]
pub struct Watchdog {
    limit: Duration,
    missed: Missed,
    seats: Mutex<Vec<Arc<Seat>>>,
    /// Why every session that comes from now on is to end; set once.
    over: Mutex<Option<ServerTrouble>>,
}

/// What the sentry knows of a session.
#[derive(Debug)]
struct Seat {
    cut: watch::Sender<Option<ServerTrouble>>,
    asked: Mutex<Asked>,
}

/// Generation requests of a session.
#[derive(Debug, Default)]
struct Asked {
    served: Served,
    /// Those in the server that have no token yet, and since when.
    waiting: BTreeMap<u32, Stamp>,
}

/// Tells the sentry of a session's requests. Cheap to clone; never blocks for long.
#[derive(Clone, Debug)]
pub struct Informer {
    seat: Arc<Seat>,
    missed: Missed,
}

/// Why a session is to end, once the sentry says so.
#[derive(Clone, Debug)]
pub struct Cut(watch::Receiver<Option<ServerTrouble>>);

impl Watchdog {
    /// `limit` is that of the first token of each generation request, on the wall clock.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            missed: Missed::default(),
            seats: Mutex::default(),
            over: Mutex::default(),
        }
    }

    /// Takes a session under watch.
    pub fn seat(&self) -> (Informer, Cut) {
        let (cut, reported) = watch::channel(self.over.lock().clone());
        let seat = Arc::new(Seat {
            cut,
            asked: Mutex::default(),
        });
        self.seats.lock().push(seat.clone());
        let informer = Informer {
            seat,
            missed: self.missed.clone(),
        };
        (informer, Cut(reported))
    }

    /// Whether the server is lost.
    pub fn is_over(&self) -> bool {
        self.over.lock().is_some()
    }

    /// Does `work` to its end beside the watch; tells whether the server was lost meanwhile.
    pub async fn beside<T>(
        &self,
        server: &Connected,
        work: impl Future<Output = T>,
    ) -> (T, Option<Lost>) {
        let mut work = pin!(work);
        let lost = {
            let stalls = pin!(self.watch_stalls(server));
            let loss = pin!(lost(server, &self.missed));
            tokio::select! {
                biased;
                done = &mut work => return (done, None),
                lost = loss => lost,
                never = stalls => match never {},
            }
        };
        self.end_all(&ServerTrouble::Lost(lost.loss()));
        (work.await, Some(lost))
    }

    /// Ends every session, also those that come yet.
    fn end_all(&self, trouble: &ServerTrouble) {
        *self.over.lock() = Some(trouble.clone());
        for seat in self.seats.lock().iter() {
            seat.end(trouble);
        }
    }

    async fn watch_stalls(&self, server: &Connected) -> std::convert::Infallible {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            if self.stalled(Stamp::now()).is_empty() {
                continue;
            }
            let pulse = pulse(server).await;
            let lines = server.last_lines();
            // Who got a token meanwhile has not waited in vain.
            for seat in self.stalled(Stamp::now()) {
                let (served, waiting) = seat.counts();
                let stall = stall(served, waiting, self.limit.into(), pulse, &lines);
                seat.end(&ServerTrouble::Stalled(stall));
            }
        }
    }

    /// The sessions with a request that has waited for longer than the limit, and that go on yet.
    fn stalled(&self, now: Stamp) -> Vec<Arc<Seat>> {
        let seats = self.seats.lock();
        let waits = |seat: &&Arc<Seat>| {
            let asked = seat.asked.lock();
            let mut waiting = asked.waiting.values();
            seat.cut.borrow().is_none() && waiting.any(|at| now.since(*at) > self.limit)
        };
        seats.iter().filter(waits).cloned().collect()
    }
}

impl Seat {
    fn end(&self, trouble: &ServerTrouble) {
        self.cut.send_if_modified(|reported| {
            let is_new = reported.is_none();
            if is_new {
                *reported = Some(trouble.clone());
            }
            is_new
        });
    }

    /// What its requests came to, and how many wait.
    fn counts(&self) -> (Served, usize) {
        let asked = self.asked.lock();
        (asked.served, asked.waiting.len())
    }
}

impl Informer {
    /// Takes note of what happened at the session's gateway.
    pub fn note(&self, event: &GatewayEvent) {
        match event {
            GatewayEvent::Started {
                number,
                dialect,
                stream: true,
                at,
                ..
            } if dialect.generates() => {
                let mut asked = self.seat.asked.lock();
                asked.served.sent += 1;
                asked.waiting.insert(*number, *at);
            }
            GatewayEvent::FirstToken { number, .. } => {
                let mut asked = self.seat.asked.lock();
                asked.served.generated += 1;
                asked.waiting.remove(number);
            }
            GatewayEvent::Finished(attempt) => {
                self.seat.asked.lock().waiting.remove(&attempt.number);
                if matches!(
                    attempt.outcome,
                    Outcome::Unreachable | Outcome::Truncated | Outcome::UpstreamError
                ) {
                    self.missed.report();
                }
            }
            _ => {}
        }
    }
}

impl Cut {
    /// Waits for the sentry to end the session; tells why. For ever when it never does.
    pub async fn wait(&mut self) -> ServerTrouble {
        let reported = self.0.wait_for(Option::is_some).await;
        let trouble = reported.ok().and_then(|reported| reported.clone());
        match trouble {
            Some(trouble) => trouble,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use flashrig_gateway::RequestProgress;
    use flashrig_record::{Dialect, Fact as _, Role, ServerLoss};

    const LIMIT: Duration = Duration::from_secs(10);

    fn started(number: u32, stream: bool, at: Stamp) -> GatewayEvent {
        GatewayEvent::Started {
            number,
            progress: Arc::new(RequestProgress::new(at)),
            method: "POST".into(),
            path: "/v1/messages".into(),
            dialect: Dialect::AnthropicMessages,
            role: Role::Main,
            stream,
            body: Bytes::new(),
            at,
        }
    }

    fn at(seconds: u64) -> Stamp {
        Stamp(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn a_request_is_stalled_beyond_the_limit_unless_a_token_came_or_it_is_over() {
        let watchdog = Watchdog::new(LIMIT);
        let (informer, _cut) = watchdog.seat();
        informer.note(&started(1, true, at(0)));
        assert!(watchdog.stalled(at(10)).is_empty());
        assert_eq!(watchdog.stalled(at(11)).len(), 1);
        informer.note(&GatewayEvent::FirstToken {
            number: 1,
            at: at(11),
        });
        assert!(watchdog.stalled(at(100)).is_empty());
        informer.note(&started(2, true, at(100)));
        let mut attempt = flashrig_record::Attempt::begun(Dialect::AnthropicMessages, Role::Main);
        attempt.number = 2;
        informer.note(&GatewayEvent::Finished(Box::new(attempt)));
        assert!(watchdog.stalled(at(200)).is_empty());
    }

    #[test]
    fn an_answer_that_is_to_come_in_one_piece_has_no_first_token_to_wait_for() {
        let watchdog = Watchdog::new(LIMIT);
        let (informer, _cut) = watchdog.seat();
        informer.note(&started(1, false, at(0)));
        assert!(watchdog.stalled(at(100)).is_empty());
    }

    #[tokio::test]
    async fn a_session_is_ended_once_and_those_that_come_after_the_loss_at_once() {
        let watchdog = Watchdog::new(LIMIT);
        let (_informer, mut cut) = watchdog.seat();
        let [died, later] = ["it died", "something later"]
            .map(|text| ServerTrouble::Lost(ServerLoss::other(text.to_owned())));
        watchdog.end_all(&died);
        watchdog.seats.lock()[0].end(&later);
        assert_eq!(cut.wait().await, died);
        let (_informer, mut late) = watchdog.seat();
        assert_eq!(late.wait().await, died);
        assert!(watchdog.is_over());
    }
}
