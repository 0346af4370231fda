//! What a session sends and what it makes of the answers.

use std::collections::HashSet;

use flashrig_load::{LoadDialect, Meter, Prepared, SessionPlan, calibrate};
use flashrig_record::{Role, Turn};

use super::counting::{Counting, Manner};
use super::upstream::let_connections_settle;
use super::{client, plan};

async fn session(server: &Counting, plan: SessionPlan) -> Vec<Turn> {
    let client = client(&server.url, LoadDialect::OpenaiChat);
    let calibration = calibrate(&client, 3).await.unwrap();
    let checks = plan.checks;
    let mut session = Prepared::new(&client, &calibration, plan).unwrap();
    let mut turns = vec![session.cold(&client).await];
    for index in 1..=checks {
        turns.push(session.warm(&client, index).await);
    }
    turns
}

fn wrong(turns: &[Turn]) -> Vec<u32> {
    let wrong = turns.iter().filter(|turn| turn.right == Some(false));
    wrong.map(|turn| turn.index).collect()
}

#[tokio::test]
async fn a_server_that_remembers_gets_every_question_right_and_the_first_turn_asks_none() {
    let server = Counting::start(Manner::default()).await;
    let turns = session(&server, plan("s1", 4096, 13)).await;
    assert_eq!((turns[0].asked.as_ref(), turns[0].right), (None, None));
    assert!(turns[1..].iter().all(|turn| turn.right == Some(true)));
    let asked: HashSet<&String> = turns.iter().filter_map(|t| t.asked.as_ref()).collect();
    assert_eq!(asked.len(), 13, "each fact is asked for once");
}

#[tokio::test]
async fn a_fact_that_was_dropped_is_noticed_in_its_turn() {
    let manner = Manner {
        forgets: Some(7),
        ..Manner::default()
    };
    let server = Counting::start(manner).await;
    assert_eq!(wrong(&session(&server, plan("s1", 4096, 13)).await), [7]);
}

#[tokio::test]
async fn an_answer_from_another_sessions_prompt_is_wrong() {
    let manner = Manner {
        confuses_sessions: true,
        ..Manner::default()
    };
    let server = Counting::start(manner).await;
    assert!(wrong(&session(&server, plan("a", 4096, 3)).await).is_empty());
    assert_eq!(
        wrong(&session(&server, plan("b", 4096, 3)).await),
        [1, 2, 3]
    );
}

#[tokio::test]
async fn each_turn_appends_to_the_one_before_and_the_same_seed_gives_the_same_bytes_again() {
    let (one, again) = (
        Counting::start(Manner::default()).await,
        Counting::start(Manner::default()).await,
    );
    session(&one, plan("s1", 4096, 3)).await;
    session(&again, plan("s1", 4096, 3)).await;
    let bodies = one.bodies();
    assert_eq!(bodies, again.bodies());
    let turns = &bodies[bodies.len() - 4..];
    for (n, pair) in turns.windows(2).enumerate() {
        let (before, after) = (&pair[0]["messages"], &pair[1]["messages"]);
        let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
        assert_eq!(after.len(), before.len() + 2, "turn {n}");
        assert_eq!(&after[..before.len()], before.as_slice());
        assert_eq!(after[before.len()]["role"], "assistant");
    }
}

#[tokio::test]
async fn sessions_share_no_line_at_their_start_unless_they_are_to() {
    let server = Counting::start(Manner::default()).await;
    for shared_prefix in [false, true] {
        let mut firsts = Vec::new();
        for id in ["a", "b"] {
            let plan = SessionPlan {
                shared_prefix,
                ..plan(id, 4096, 0)
            };
            session(&server, plan).await;
            let body = server.bodies().pop().unwrap();
            firsts.push(body["messages"][0]["content"].as_str().unwrap().to_owned());
        }
        let common = firsts[0]
            .bytes()
            .zip(firsts[1].bytes())
            .take_while(|(a, b)| a == b)
            .count();
        assert_ne!(firsts[0], firsts[1]);
        assert_eq!(
            common > firsts[0].len() * 9 / 10,
            shared_prefix,
            "{common} bytes"
        );
        assert!(shared_prefix || common < 74, "{common} bytes");
    }
}

#[tokio::test]
async fn a_session_keeps_its_connection_and_every_request_has_a_row() {
    let server = Counting::start(Manner::default()).await;
    let client = client(&server.url, LoadDialect::OpenaiChat);
    let calibration = calibrate(&client, 3).await.unwrap();
    assert_eq!(client.take_rows().len(), 6, "calibration has its rows");
    let meter = Meter::start(&client, true).unwrap();
    let mut session = Prepared::new(&client, &calibration, plan("s1", 4096, 5)).unwrap();
    session.cold(&client).await;
    let before = server.connections();
    for index in 1..=5 {
        let_connections_settle().await;
        session.warm(&client, index).await;
    }
    assert_eq!(server.connections(), before);
    let rows = client.take_rows();
    let numbers: Vec<u32> = rows.iter().map(|row| row.attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    for row in &rows {
        let attempt = &row.attempt;
        assert_eq!((row.session.as_str(), attempt.role), ("s1", Role::Main));
        let clocks = &attempt.clocks;
        let order = [
            clocks.sent_s,
            clocks.response_head_s,
            clocks.first_byte_s,
            clocks.first_token_s,
            clocks.last_token_s,
            Some(clocks.end_s),
        ];
        assert!(order.iter().all(Option::is_some), "{clocks:?}");
        assert!(order.is_sorted(), "{clocks:?}");
        assert_eq!(attempt.content_events, 16);
    }
    let honesty = meter.finish();
    assert_eq!(honesty.max_in_flight, Some(1));
    assert_eq!(
        (honesty.cpu_s, honesty.cpu_share),
        (None, None),
        "the process is shared"
    );
}
