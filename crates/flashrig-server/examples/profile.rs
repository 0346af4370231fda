//! Reads what a built-in profile says of a server, and what it makes of a line of its log.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_server::{Library, events};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let library = Library::new(None);
    println!("known servers: {}", library.names().join(", "));
    let profile = library.load("sim")?;
    println!("{}: {}", profile.name, profile.title);
    let line = "rejecting: prompt is too long: 200000 tokens > 131072 maximum";
    for event in events(&profile.interface.log, line) {
        println!("{event:?}");
    }
    Ok(())
}
