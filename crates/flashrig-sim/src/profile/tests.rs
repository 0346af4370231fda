//! The table's rules, and the durations that follow from it.

use super::*;

fn table() -> SimTable {
    toml::from_str(
        "max_concurrent = 4\nprefill_s_per_token = 1e-4\nprefill_s_per_token_squared = 1e-9\n\
         cache_tokens = 1000\n\
         decode = [{ batch = 1, step_ms = 10.0 }, { batch = 2, step_ms = 16.0 }, { batch = 4, step_ms = 30.0 }]",
    )
    .unwrap()
}

fn two_contexts() -> SimTable {
    let mut table = table();
    let point = |context, batch, step_ms| DecodePoint {
        context,
        batch,
        step_ms,
    };
    table.decode = vec![
        point(1000, 1, 10.0),
        point(1000, 2, 12.0),
        point(3000, 1, 20.0),
        point(3000, 2, 28.0),
    ];
    table
}

#[test]
fn decode_steps_are_interpolated_between_points_and_extrapolated_beyond() {
    let timing = Timing::try_from(&table()).unwrap();
    let step = |n| timing.decode_step(n, 5e5).as_micros();
    assert_eq!(
        [step(1), step(2), step(3), step(4), step(6)],
        [10_000, 16_000, 23_000, 30_000, 44_000]
    );
}

#[test]
fn decode_steps_follow_the_context_too_and_are_never_below_the_shortest_context_s() {
    let timing = Timing::try_from(&two_contexts()).unwrap();
    let step = |n, context| timing.decode_step(n, context).as_micros();
    assert_eq!([step(1, 0.0), step(2, 500.0)], [10_000, 12_000]);
    assert_eq!([step(1, 2000.0), step(2, 2000.0)], [15_000, 20_000]);
    assert_eq!([step(2, 3000.0), step(2, 4000.0)], [28_000, 36_000]);
    assert_eq!(step(3, 2000.0), 25_000);
}

#[test]
fn a_table_of_one_point_batches_for_free() {
    let mut table = table();
    table.decode.truncate(1);
    let timing = Timing::try_from(&table).unwrap();
    assert_eq!(timing.decode_step(8, 0.0).as_millis(), 10);
}

#[test]
fn prefill_in_chunks_takes_as_long_as_at_once() {
    let timing = Timing::try_from(&table()).unwrap();
    let chunks = timing.prefill(0, 3000) + timing.prefill(3000, 10_000);
    assert!((chunks.as_secs_f64() - timing.prefill(0, 10_000).as_secs_f64()).abs() < 1e-6);
    assert!((chunks.as_secs_f64() - 1.1).abs() < 1e-6);
}

#[test]
fn taking_nothing_from_the_cache_costs_nothing() {
    let mut table = table();
    (table.restore_ms, table.restore_disk_s_per_token) = (500.0, 1e-3);
    let timing = Timing::try_from(&table).unwrap();
    assert!(timing.restore(0, 0).is_zero());
    assert_eq!(timing.restore(1, 0).as_millis(), 500);
    assert_eq!(timing.restore(1, 250).as_millis(), 750);
}

#[test]
fn values_that_cannot_be_are_refused_with_field_and_rule() {
    type Spoil = fn(&mut SimTable);
    let cases: [(Spoil, &str); 19] = [
        (|t| t.max_concurrent = 0, "max_concurrent"),
        (|t| t.prefill_s_per_token = 0.0, "prefill_s_per_token"),
        (|t| t.prefill_s_per_token = f64::NAN, "prefill_s_per_token"),
        (|t| t.noise = 0.9, "noise"),
        (|t| t.decode.clear(), "decode"),
        (|t| t.decode[0].batch = 2, "decode.batch"),
        (|t| t.decode[2].step_ms = 1.0, "decode.step_ms"),
        (|t| t.decode[1].context = 5, "decode.batch"),
        (|t| t.cache_block_tokens = 0, "cache_block_tokens"),
        (|t| t.prefill_decode_share = 1.0, "prefill_decode_share"),
        (
            |t| (t.prefill_interleave, t.prefill_decode_share) = (true, 0.5),
            "prefill_interleave",
        ),
        (
            |t| (t.prefill_beside, t.prefill_order) = (true, PrefillOrder::ShortestFirst),
            "prefill_beside",
        ),
        (|t| t.restore_ms = -1.0, "restore_ms"),
        (|t| t.cache_tokens = None, "cache_tokens"),
        (|t| t.cache_per_slot = true, "cache_tokens"),
        (|t| t.memory = Some(ByteSize(1 << 30)), "kv_bytes_per_token"),
        (
            |t| {
                (t.memory, t.weights, t.kv_bytes_per_token) = (Some(ByteSize(5)), ByteSize(5), 1);
            },
            "memory",
        ),
        (|t| t.kv_bits = 5, "kv_bits"),
        (
            |t| t.faults.drop_fact_every = Some(0),
            "faults.drop_fact_every",
        ),
    ];
    for (spoil, field) in cases {
        let mut table = table();
        spoil(&mut table);
        assert_eq!(Timing::try_from(&table).unwrap_err().field, field);
    }
}

#[test]
fn a_context_divided_among_slots_is_each_slot_s_share() {
    let mut table = table();
    table.context_per_slot = true;
    let profile = SimProfile::new("n", "m", 4096, &table).unwrap();
    assert_eq!(profile.context, 1024);
    assert!(SimProfile::new("n", "m", 3, &table).is_err());
}

#[test]
fn an_unknown_field_is_refused() {
    for text in [
        "max_concurent = 1",
        "max_concurrent = 1\nfaults = { stal = 1 }",
    ] {
        let error = toml::from_str::<SimTable>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}
