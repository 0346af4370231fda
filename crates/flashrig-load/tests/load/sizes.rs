//! Prompts of exactly so many tokens as asked for, by the server's own count.

use flashrig_load::{LoadDialect, LoadError, Prepared, SidePlan, calibrate, side};
use flashrig_record::Outcome;

use super::counting::{Count, Counting, Manner};
use super::{client, plan};

/// The counting server gives its answers in few tokens and counts more for them when they come
/// back, as servers may.
#[tokio::test]
async fn a_session_fills_its_context_to_the_last_turn_and_never_beyond_whatever_the_tokenizer() {
    for count in [Count::Words, Count::Bytes] {
        for dialect in [LoadDialect::OpenaiChat, LoadDialect::AnthropicMessages] {
            let server = Counting::start(Manner {
                count,
                ..Manner::default()
            })
            .await;
            let client = client(&server.url, dialect);
            let calibration = calibrate(&client, 3).await.unwrap();
            assert!(calibration.fixed_output, "{calibration:?}");
            for context in [4096, 32_768] {
                let plan = plan("s1", context, 13);
                let mut session = Prepared::new(&client, &calibration, plan).unwrap();
                let mut last = session.cold(&client).await;
                for index in 1..=13 {
                    last = session.warm(&client, index).await;
                    assert_eq!(
                        (last.outcome, last.output_tokens),
                        (Outcome::Complete, Some(16))
                    );
                }
                let whole = last.input_tokens.unwrap() + last.output_tokens.unwrap();
                let message = format!("{count:?} {dialect:?}: {whole} of {context}");
                assert!(whole <= context, "{message}: too long");
                assert!(whole + 64 >= context, "{message}: too short");
            }
        }
    }
}

#[tokio::test]
async fn a_first_prompt_has_exactly_the_tokens_asked_for_once_the_server_has_counted_one() {
    for count in [Count::Words, Count::Bytes] {
        let server = Counting::start(Manner {
            count,
            ..Manner::default()
        })
        .await;
        let client = client(&server.url, LoadDialect::OpenaiChat);
        let calibration = calibrate(&client, 3).await.unwrap();
        for tokens in [512_u64, 2048, 8000] {
            let mut off = Vec::new();
            for id in ["a", "b", "c"] {
                let plan = plan(id, tokens + 16, 0);
                let mut request = Prepared::new(&client, &calibration, plan).unwrap();
                let turn = request.cold(&client).await;
                off.push(turn.input_tokens.unwrap().abs_diff(tokens));
            }
            assert!(
                off[0] <= 4,
                "{count:?}, {tokens}: off by {off:?} uncorrected"
            );
            assert!(
                off[1..].iter().all(|off| *off <= 1),
                "{count:?}, {tokens}: off by {off:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_side_request_has_its_size_too_and_one_too_small_for_any_prompt_is_as_small_as_can_be() {
    let server = Counting::start(Manner::default()).await;
    let client = client(&server.url, LoadDialect::OpenaiChat);
    let calibration = calibrate(&client, 3).await.unwrap();
    for (tokens, most) in [(200, 203), (1, 60)] {
        let plan = SidePlan {
            id: "side".to_owned(),
            prompt_tokens: tokens,
            answer_tokens: 8,
            seed: 3,
            salt: 9,
            during_cold: false,
        };
        let turn = side(&client, &calibration, plan).await;
        assert_eq!(turn.outcome, Outcome::Complete);
        let counted = server.tokens(server.bodies().last().unwrap());
        assert!(
            counted <= most && counted + 3 >= tokens,
            "{counted} of {tokens}"
        );
    }
}

#[tokio::test]
async fn a_context_that_leaves_no_room_for_the_turns_is_refused_with_what_they_need() {
    let server = Counting::start(Manner::default()).await;
    let client = client(&server.url, LoadDialect::OpenaiChat);
    let calibration = calibrate(&client, 3).await.unwrap();
    let error = Prepared::new(&client, &calibration, plan("s", 1024, 13)).unwrap_err();
    assert!(
        matches!(error, LoadError::TooSmall { context_tokens: 1024, needed } if needed > 1024),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_length_fields_is_asked_without_them() {
    for (fixes_length, refused) in [(None, 1), (Some(false), 0)] {
        let manner = Manner {
            fixes_length,
            ..Manner::default()
        };
        let server = Counting::start(manner).await;
        let client = client(&server.url, LoadDialect::OpenaiChat);
        let calibration = calibrate(&client, 3).await.unwrap();
        assert!(!calibration.fixed_output);
        let mut session = Prepared::new(&client, &calibration, plan("s", 4096, 2)).unwrap();
        session.cold(&client).await;
        let sent = server.bodies();
        assert!(sent.last().unwrap().get("ignore_eos").is_none());
        let tried = sent.iter().filter(|body| body.get("ignore_eos").is_some());
        assert_eq!(tried.count(), 1, "once, and never again");
        let rows = client.take_rows();
        let refusals = rows
            .iter()
            .filter(|row| row.attempt.outcome == Outcome::Refused);
        assert_eq!(refusals.count(), refused);
    }
}

#[tokio::test]
async fn prompts_are_counted_without_generating_where_the_server_counts_as_its_usage_does() {
    let with = async |route_counts_more| {
        let manner = Manner {
            route_counts_more,
            ..Manner::default()
        };
        let server = Counting::start(manner).await;
        let client = client(&server.url, LoadDialect::OpenaiChat);
        let calibration = calibrate(&client, 3).await.unwrap();
        (calibration, server.counted(), server.bodies().len())
    };
    let (by_usage, counted, generated) = with(None).await;
    assert_eq!((counted, generated), (0, 6));
    let (by_route, counted, generated) = with(Some(0)).await;
    assert_eq!((counted, generated), (6, 1));
    assert_eq!(by_route, by_usage);
    let (distrusted, counted, generated) = with(Some(3)).await;
    assert_eq!(
        (counted, generated),
        (1, 6),
        "another count than usage's is not used"
    );
    assert_eq!(distrusted, by_usage);
}
