//! Head-of-line blocking on a real scheduler. llama.cpp fills each batch slot by slot, in their
//! order: a short request in a slot above that of a long prompt waits until that is read, one in a
//! slot below only for the batch in which it comes.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::servers::stage::{Ran, Real, alone, flashrig};

/// A long prompt with a short request beside it.
#[derive(Debug)]
struct Beside {
    /// The short one's slot is above that of the long one.
    above: bool,
    /// The short one's time to its first token, over what the long one still had to read.
    share: f64,
}

#[test]
fn a_short_request_waits_for_a_whole_prompt_in_a_slot_above_and_for_a_batch_in_one_below() {
    let _alone = alone();
    let in_large_batches = beside("2048");
    let in_small_ones = beside("128");
    for seen in in_large_batches.iter().chain(&in_small_ones) {
        if seen.above {
            assert!(seen.share > 0.8, "{in_large_batches:?} {in_small_ones:?}");
        }
    }
    let best = |seen: &[Beside]| {
        let below = seen.iter().filter(|s| !s.above).map(|s| s.share);
        below.reduce(f64::min).unwrap()
    };
    assert!(in_large_batches.iter().any(|s| s.above));
    assert!(in_small_ones.iter().any(|s| s.above));
    // Smaller batches, a shorter wait; the whole prompt holds 32 of them.
    assert!(best(&in_small_ones) < 0.4, "{in_small_ones:?}");
    assert!(
        best(&in_small_ones) < best(&in_large_batches),
        "{in_small_ones:?} {in_large_batches:?}"
    );
}

/// Measures on a server with two slots and batches of so many tokens.
fn beside(batch: &str) -> Vec<Beside> {
    let args = [
        "-np", "2", "-c", "16384", "-t", "1", "-b", batch, "-ub", batch,
    ];
    let server = Real::llama(&args);
    let args = [
        "--contexts=4k",
        "--sessions=1",
        "--rounds=4",
        "--checks=1",
        "--answer-tokens=16",
        "--json",
    ];
    let ran = flashrig(&[&["fit", "--server", &server.url()], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let requests = with_slots(&ran, &server.log());
    let clock = |request: &Value, name: &str| request["clocks"][name].as_f64().unwrap();
    let mut seen = Vec::new();
    for (at, (short, slot)) in requests.iter().enumerate() {
        let (long, slot_of_long) = match at.checked_sub(1) {
            Some(before) if tokens(short) < 1000 => &requests[before],
            _ => continue,
        };
        let sent = clock(short, "sent_s");
        assert!(sent < clock(long, "first_token_s"), "{short:#} {long:#}");
        seen.push(Beside {
            above: slot > slot_of_long,
            share: (clock(short, "first_token_s") - sent) / (clock(long, "first_token_s") - sent),
        });
    }
    assert_eq!(seen.len(), 4, "{ran:#?}");
    seen
}

fn tokens(request: &Value) -> u64 {
    request["input_tokens"].as_u64().unwrap()
}

/// A run's requests in the order of sending, each with the slot that it was given by the log, where
/// they stand in the same order; what comes first there is the rig finding out how tokens count.
fn with_slots(ran: &Ran, log: &str) -> Vec<(Value, u64)> {
    let given = Regex::new(r"id +(\d+) \| task (\d+) \| processing task").unwrap();
    let new = Regex::new(r"\| task (\d+) \| new prompt, .*task\.n_tokens = (\d+)").unwrap();
    let prompts: BTreeMap<u64, u64> = new
        .captures_iter(log)
        .map(|found| (found[1].parse().unwrap(), found[2].parse().unwrap()))
        .collect();
    let mut given: Vec<(u64, u64)> = given
        .captures_iter(log)
        .map(|found| (found[2].parse().unwrap(), found[1].parse().unwrap()))
        .collect();
    let mut requests = ran.requests();
    requests.sort_by(|a, b| {
        let sent = |request: &Value| request["clocks"]["sent_s"].as_f64().unwrap();
        sent(a).total_cmp(&sent(b))
    });
    let given = given.split_off(given.len() - requests.len());
    let joined = requests.into_iter().zip(given);
    joined
        .map(|(request, (task, slot))| {
            assert_eq!(tokens(&request), prompts[&task], "{request:#}: {log}");
            (request, slot)
        })
        .collect()
}
