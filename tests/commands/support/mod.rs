//! What tests of several commands share.

pub mod http;
pub mod machine;
pub mod managed;
pub mod serving;
pub mod terminal;
