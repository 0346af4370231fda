//! Embedded folders are read at compile time; without this, a file added to one of them would
//! not be noticed.

fn main() {
    for folder in ["tasks", "fixtures"] {
        println!("cargo:rerun-if-changed={folder}");
    }
}
