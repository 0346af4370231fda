//! Lists the profiles that are built into the program.

#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use flashrig_harness::HARNESS;

fn main() {
    for folder in ["agents", "servers"] {
        let files = HARNESS.get_dir(folder).map(|dir| dir.files());
        for file in files.into_iter().flatten() {
            println!("{}", file.path().display());
        }
    }
}
