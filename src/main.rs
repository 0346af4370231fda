//! The `flashrig` program.

fn main() {}
