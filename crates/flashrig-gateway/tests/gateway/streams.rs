//! Streams through the gateway: the same bytes, the right clocks, everything read from them.

use crate::gateway_rig::*;
use flashrig_gateway::GatewayEvent;
use flashrig_record::{Dialect, Outcome, Role};
use proptest::prelude::*;

#[tokio::test]
async fn headers_first_byte_first_token_and_first_text_have_clocks_of_their_own() {
    let rig = Rig::new().await;
    let sent = rig.now();
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let mut moments = vec![sent, rig.now()];
    server.start_stream().await;
    client.head().await.unwrap();
    let steps = [
        (delta(r#"{"role":"assistant","content":""}"#), "assistant"),
        (": keepalive 3/9\n\n".to_owned(), "3/9"),
        (delta(r#"{"reasoning_content":"hm"}"#), "hm"),
        (delta(r#"{"content":"hello"}"#), "hello"),
        (
            delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#),
            "arguments",
        ),
    ];
    // The next step is sent only once the client has seen the one before.
    moments.push(rig.now());
    for (bytes, mark) in steps {
        server.send_chunk(bytes).await;
        client.chunks_until(mark).await;
        moments.push(rig.now());
    }
    server.send_chunk(STOP).await;
    server.end_stream().await;
    client.chunks_until("[DONE]").await;
    assert_eq!(client.chunk().await.unwrap(), b"");

    let events = std::sync::Arc::clone(&rig.events);
    let row = rig.row().await;
    let clocks = &row.clocks;
    let between = |clock: Option<_>, from: usize| {
        let clock = clock.expect("the clock was not taken");
        assert!(
            moments[from] <= clock && clock <= moments[from + 1],
            "{from}: {clock:?} in {moments:?}"
        );
    };
    between(Some(clocks.head_s), 0);
    between(clocks.body_s, 0);
    between(clocks.permit_s, 0);
    between(clocks.connected_s, 0);
    between(clocks.sent_s, 0);
    between(clocks.response_head_s, 1);
    between(clocks.first_byte_s, 2);
    between(clocks.first_token_s, 4);
    between(clocks.first_text_s, 5);
    between(clocks.last_token_s, 6);
    assert!(moments[7] <= clocks.end_s);
    assert_eq!((row.outcome, row.content_events), (Outcome::Complete, 3));
    let gap = row.longest_gap_s.unwrap();
    assert!(
        gap.0 > 0.0
            && gap.0 <= clocks.last_token_s.unwrap().0 - clocks.first_token_s.unwrap().0 + 1e-6
    );

    let events = events.lock().unwrap();
    let names: Vec<&str> = events
        .iter()
        .filter(|event| !matches!(event, GatewayEvent::Answer { .. }))
        .map(|event| match event {
            GatewayEvent::Started {
                role: Role::Main,
                dialect: Dialect::OpenaiChat,
                number: 1,
                ..
            } => "started",
            GatewayEvent::Held { .. } => "held",
            GatewayEvent::Started { .. } => "started otherwise",
            GatewayEvent::FirstToken { .. } => "first",
            GatewayEvent::Content { .. } => "content",
            GatewayEvent::Finished(_) => "finished",
            GatewayEvent::Answer { .. } => "answer",
        })
        .collect();
    let passed: Vec<u8> = events
        .iter()
        .filter_map(|event| match event {
            GatewayEvent::Answer { bytes, .. } => Some(bytes.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(passed.len() as u64, row.response_bytes);
    assert_eq!(
        names,
        [
            "started", "first", "content", "content", "content", "finished"
        ]
    );
}

#[tokio::test]
async fn tool_arguments_alone_are_a_first_token_without_visible_text() {
    let named =
        delta(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"ls","arguments":""}}]}"#);
    let arguments = delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#);
    let (_, _, row) = chat_stream(&[&named, &arguments, STOP]).await;
    assert_eq!(row.content_events, 1);
    assert!(row.clocks.first_token_s.is_some());
    assert_eq!(row.clocks.first_text_s, None);
}

#[tokio::test]
async fn an_anthropic_stream_is_read_and_its_row_is_full() {
    let chunks = [
        event(
            "message_start",
            r#"{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}}}"#,
        ),
        event(
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ),
        event(
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
        ),
        event(
            "content_block_stop",
            r#"{"type":"content_block_stop","index":0}"#,
        ),
        event(
            "message_delta",
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#,
        ),
        event("message_stop", r#"{"type":"message_stop"}"#),
    ];
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let (body, whole, row) = stream(MESSAGES, MESSAGES_BODY, &chunks).await;
    assert!(whole);
    assert_eq!(String::from_utf8(body).unwrap(), chunks.concat());
    assert_eq!(
        (row.outcome, row.status, row.role),
        (Outcome::Complete, Some(200), Role::Main)
    );
    assert_eq!(
        (row.input_tokens, row.cached_tokens, row.output_tokens),
        (Some(100), Some(90), Some(7))
    );
    assert_eq!(
        (row.dialect, row.path.as_str()),
        (Dialect::AnthropicMessages, "/v1/messages")
    );
    assert_eq!(
        (row.model.as_deref(), row.stream, row.tools),
        (Some("m"), true, Some(1))
    );
    assert_eq!((row.messages, row.max_tokens), (Some(1), Some(32000)));
    assert_eq!(row.stop_reason.as_deref(), Some("end_turn"));
    assert_eq!(row.response_bytes as usize, chunks.concat().len());
    assert_eq!(row.request_bytes as usize, MESSAGES_BODY.len());
    assert_eq!(
        (row.missing_fields.len(), row.repeats, row.body_changed),
        (0, None, false)
    );
}

#[tokio::test]
async fn a_responses_stream_is_read() {
    let chunks = [
        event(
            "response.output_text.delta",
            r#"{"type":"response.output_text.delta","delta":"hi"}"#,
        ),
        event(
            "response.completed",
            r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":1}}}"#,
        ),
    ];
    let body = r#"{"model":"m","stream":true,"input":[{},{}]}"#;
    let (_, _, row) = stream(RESPONSES, body, &[&chunks[0], &chunks[1]]).await;
    assert_eq!(
        (row.outcome, row.dialect, row.messages),
        (Outcome::Complete, Dialect::OpenaiResponses, Some(2))
    );
    assert_eq!(
        (row.input_tokens, row.cached_tokens, row.output_tokens),
        (Some(5), None, Some(1))
    );
}

#[tokio::test]
async fn plain_answers_are_read_too_and_have_no_token_clocks() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, r#"{"model":"m","messages":[]}"#).await;
    let (mut server, _) = rig.server.request().await;
    let answer = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}"#;
    server.answer("200 OK", answer).await;
    assert_eq!(client.response().await.body, answer.as_bytes());
    let row = rig.row().await;
    assert_eq!(
        (row.outcome, row.stream, row.stop_reason.as_deref()),
        (Outcome::Complete, false, Some("stop"))
    );
    assert_eq!(
        (row.input_tokens, row.cached_tokens, row.output_tokens),
        (Some(9), Some(8), Some(2))
    );
    let clocks = row.clocks;
    assert!(clocks.first_byte_s.is_some());
    assert_eq!(
        (
            clocks.first_token_s,
            clocks.first_text_s,
            clocks.last_token_s
        ),
        (None, None, None)
    );
}

#[tokio::test]
async fn a_missing_required_field_is_named() {
    let start = event(
        "message_start",
        r#"{"type":"message_start","message":{"id":"m1"}}"#,
    );
    let stop = event("message_stop", r#"{"type":"message_stop"}"#);
    let (_, _, row) = stream(MESSAGES, MESSAGES_BODY, &[&start, &stop]).await;
    assert_eq!(row.missing_fields, ["message_start.message.usage"]);
    assert_eq!((row.outcome, row.input_tokens), (Outcome::Complete, None));
    let (_, _, row) = chat_stream(&["data: {\"id\":\"c\"}\n\n", STOP]).await;
    assert_eq!(row.missing_fields, ["choices"]);
}

#[tokio::test]
async fn tokens_are_unknown_when_the_stream_has_no_usage() {
    let (_, _, row) = chat_stream(&[&delta(r#"{"content":"hi"}"#), STOP]).await;
    assert_eq!(
        (row.input_tokens, row.cached_tokens, row.output_tokens),
        (None, None, None)
    );
    assert_eq!(row.content_events, 1);
}

#[tokio::test]
async fn usage_in_a_last_chunk_without_choices_counts() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
    let (_, _, row) = chat_stream(&[
        &delta(r#"{"content":"hi"}"#),
        STOP.split_once("data: [").unwrap().0,
        usage,
    ])
    .await;
    assert_eq!(
        (row.input_tokens, row.output_tokens, row.outcome),
        (Some(3), Some(1), Outcome::Complete)
    );
}

#[tokio::test]
async fn odd_line_ends_and_split_characters_change_neither_events_nor_bytes() {
    let text = format!(
        "\u{feff}: hello\r\n\r\n{}{}{}",
        delta(r#"{"content":"日本"}"#)
            .replace("\n", "\r\n")
            .replace("data: ", "data:"),
        delta(r#"{"content":"x"}"#).replace('\n', "\r"),
        STOP.replace("\n", "\r\n")
    );
    for size in [1, 2, 3, 7] {
        let rig = Rig::new().await;
        let mut client = rig.post(CHAT, CHAT_BODY).await;
        let (mut server, _) = rig.server.request().await;
        server.start_stream().await;
        for chunk in text.as_bytes().chunks(size) {
            server.send_chunk(chunk).await;
        }
        server.end_stream().await;
        let response = client.response().await;
        assert_eq!(
            (response.body.as_slice(), response.whole),
            (text.as_bytes(), true)
        );
        let row = rig.row().await;
        assert_eq!(
            (row.outcome, row.content_events, row.missing_fields.len()),
            (Outcome::Complete, 2, 0),
            "{size}"
        );
    }
}

#[tokio::test]
async fn a_line_of_eight_mebibytes_and_a_stream_without_line_ends_pass_whole() {
    let rig = Rig::new().await;
    let mut client = rig.post(CHAT, CHAT_BODY).await;
    let (mut server, _) = rig.server.request().await;
    let line = format!("data: {}\n\n{STOP}", "x".repeat(8 * 1024 * 1024));
    let sent = line.clone();
    let sending = tokio::spawn(async move {
        server.start_stream().await;
        for chunk in sent.as_bytes().chunks(100_000) {
            server.send_chunk(chunk).await;
        }
        server.end_stream().await;
        server
    });
    let response = client.response().await;
    assert!(response.whole && response.body == line.as_bytes());
    let _server = sending.await.unwrap();
    let row = rig.row().await;
    assert_eq!((row.outcome, row.content_events), (Outcome::Complete, 1));
}

#[tokio::test]
async fn every_arrival_is_kept_so_that_the_longest_stall_can_be_worked_out_again() {
    let tokens: Vec<String> = (0..40)
        .map(|n| delta(&format!("{{\"content\":\"{n}\"}}")))
        .collect();
    let chunks: Vec<&str> = tokens.iter().map(String::as_str).chain([STOP]).collect();
    let (_, _, row) = chat_stream(&chunks).await;
    assert_eq!((row.content_events, row.event_gaps_us.len()), (40, 39));
    assert!(!row.event_gaps_cut);
    let clocks = &row.clocks;
    let span = clocks.last_token_s.unwrap().0 - clocks.first_token_s.unwrap().0;
    let sum: u64 = row.event_gaps_us.iter().map(|gap| u64::from(*gap)).sum();
    assert!(
        (sum as f64 / 1e6 - span).abs() <= 2e-6,
        "{sum} µs, {span} s"
    );
    let longest = f64::from(row.event_gaps_us.iter().copied().max().unwrap()) / 1e6;
    assert!((longest - row.longest_gap_s.unwrap().0).abs() <= 2e-6);
}

#[tokio::test]
async fn tool_calls_are_put_together_and_their_oddities_flagged() {
    let parts = [
        r#"[{"index":0,"id":"","function":{"name":"ls","arguments":""}}]"#,
        r#"[{"function":{"arguments":"{\"a\":"}}]"#,
        r#"[{"function":{"arguments":"1"}}]"#,
        r#"[{"index":1,"id":"c","function":{"name":"cat","arguments":"{}"}}]"#,
    ];
    let chunks = parts.map(|calls| delta(&format!("{{\"tool_calls\":{calls}}}")));
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).chain([STOP]).collect();
    let (_, _, row) = chat_stream(&chunks).await;
    let calls: Vec<_> = row
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.name.as_deref(),
                call.id.as_deref(),
                call.argument_bytes,
            )
        })
        .collect();
    assert_eq!(calls, [(Some("ls"), None, 6), (Some("cat"), Some("c"), 2)]);
    let want = [
        "tool_call_empty_id",
        "tool_call_without_index",
        "tool_call_id_only_once",
        "tool_call_arguments_not_json",
        "stop_contradicts_tool_calls",
    ];
    assert_eq!(row.oddities, want);
}

#[tokio::test]
async fn tool_calls_of_the_other_dialects_are_put_together_too() {
    let start = |index, id| {
        let block = format!(r#"{{"type":"tool_use","id":"{id}","name":"ls","input":{{}}}}"#);
        event(
            "",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        )
    };
    let input = |index, json: &str| {
        let part = serde_json::to_string(json).unwrap();
        event(
            "",
            &format!(
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{part}}}}}"#
            ),
        )
    };
    let stop = event("", r#"{"type":"message_stop"}"#);
    let parts = [
        start(1, "t"),
        start(2, "t"),
        input(1, "{\"a\":"),
        input(2, "{}"),
        input(1, "1}"),
        input(9, " "),
    ];
    let chunks: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .chain([stop.as_str()])
        .collect();
    let (_, _, row) = stream(MESSAGES, MESSAGES_BODY, &chunks).await;
    let bytes: Vec<u64> = row
        .tool_calls
        .iter()
        .map(|call| call.argument_bytes)
        .collect();
    assert_eq!(bytes, [7, 3], "what belongs to no block goes to the last");
    assert_eq!(
        row.oddities,
        ["tool_call_duplicate_id", "tool_call_unknown_index"]
    );

    let parts = [
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"ls","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"fc","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2}}}}"#,
    ];
    let parts = parts.map(|part| event("", part));
    let chunks: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (_, _, row) = stream(RESPONSES, r#"{"stream":true}"#, &chunks).await;
    let call = &row.tool_calls[0];
    assert_eq!((call.id.as_deref(), call.argument_bytes), (Some("c"), 2));
    assert_eq!((row.reasoning_tokens, row.oddities.len()), (Some(2), 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_pass_unchanged_in_both_directions(
        up in proptest::collection::vec(any::<u8>(), 0..50_000),
        down in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..3_000), 0..20),
        stream in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (request, response, row) = runtime.block_on(async {
            let rig = Rig::new().await;
            let path = if stream { CHAT } else { "/unknown/route?x=%20y" };
            let mut client = rig.post(path, &up).await;
            let (mut server, request) = rig.server.request().await;
            server.start_stream().await;
            for chunk in &down {
                server.send_chunk(chunk).await;
            }
            server.end_stream().await;
            let response = client.response().await;
            (request, response, rig.row().await)
        });
        prop_assert_eq!(request.body, up.clone());
        prop_assert_eq!(&response.body, &down.concat());
        prop_assert!(response.whole);
        prop_assert_eq!((row.request_bytes as usize, row.response_bytes as usize), (up.len(), response.body.len()));
        prop_assert_eq!(row.body_hash.is_some(), !up.is_empty());
    }
}
