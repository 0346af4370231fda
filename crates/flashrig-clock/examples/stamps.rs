//! Measures one step, and gives its place in a run as it is stored: seconds since the origin.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_clock::{Origin, Seconds, Stamp};

fn main() {
    let origin = Origin::now();
    let began = Stamp::now();
    let sum: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();
    let took = Seconds::from(Stamp::now().since(began));
    println!("started at {} (a label only)", origin.wall);
    println!(
        "summed to {sum} at {:.6} s, in {:.6} s",
        origin.at(began).0,
        took.0
    );
}
