//! Takes two stamps and stores them as seconds since an origin.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use flashrig_clock::{Origin, Stamp};

fn main() {
    let origin = Origin::now();
    let begun = Stamp::now();
    let sum: u64 = (0..1_000_000).sum();
    let ended = Stamp::now();
    println!("sum {sum} took {:?}", ended.since(begun));
    println!(
        "stored as {:?} and {:?}",
        origin.at(begun),
        origin.at(ended)
    );
}
