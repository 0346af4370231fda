//! Any bytes as an answer, in any chunking and in every dialect: read alike, and never a panic.
//! The input's first byte says how many of the next are the chunks' lengths.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&count, rest)) = input.split_first() else {
        return;
    };
    let (cuts, answer) = rest.split_at(usize::from(count % 16).min(rest.len()));
    llm_observe::fuzz::any_chunking(answer, cuts);
});
