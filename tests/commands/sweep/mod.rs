//! `flashrig sweep` through the real binary, on the simulated server.

mod bad_input;
mod effects;
mod interrupted;
mod managed;
mod order;
mod record;
mod setting;
