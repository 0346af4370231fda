//! Reads what people type: durations, sizes, and a name that is almost right.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_config::{format_duration, format_tokens, nearest, parse_count, parse_duration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("90s is {}", format_duration(parse_duration("90s")?));
    println!("32k is {} tokens", parse_count("32k")?);
    println!("131072 tokens are {}", format_tokens(131_072));
    let known = ["claude", "opencode", "codex"];
    println!(
        "did you mean {}?",
        nearest("claud", known).unwrap_or("nothing")
    );
    // A number without a unit is refused, and the error says how to write it.
    if let Err(error) = parse_duration("90") {
        println!("error: {error}");
    }
    Ok(())
}
