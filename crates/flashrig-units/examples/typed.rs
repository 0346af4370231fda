//! Reads what people type and writes it as people read it.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_units::{format_duration, format_tokens, parse_count, parse_duration, plural};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("90s is {}", format_duration(parse_duration("90s")?));
    println!("32k is {}", plural(parse_count("32k")?, "token"));
    println!("131072 tokens are {}", format_tokens(131_072));
    // A number without a unit is refused, and the error says how to write it.
    if let Err(error) = parse_duration("90") {
        println!("error: {error}");
    }
    Ok(())
}
