//! How much of an agent's next prompt a server could take from its cache.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_record::Dialect;
use flashrig_record::threads::{Pieces, Prompt, common_prefix};

fn main() {
    let first = br#"{"messages":[{"role":"user","content":"fix the bug"}]}"#;
    let next = br#"{"messages":[{"role":"user","content":"fix the bug"},
        {"role":"assistant","content":"I look at the test first."},
        {"role":"user","content":"go on"}]}"#;
    let mut pieces = Pieces::default();
    let mut read = |body: &[u8]| Prompt::read(Dialect::OpenaiChat, body, &mut pieces);
    if let (Some(first), Some(next)) = (read(first), read(next)) {
        let common = common_prefix(&first, &next);
        println!("{} bytes are the same from the start on", common.bytes);
        println!("departs at: {:?}", common.breaks_at);
    }
}
