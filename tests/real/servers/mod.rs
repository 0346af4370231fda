//! flashrig against real servers with tiny models: llama.cpp's own HTTP server and mlx-lm's, as
//! `flashrig servers install` puts them into the cache folder.
//!
//! Needs python3 with venv, and the package registry for the first run. Not skipped without them: an
//! instrument that was never held against a real server proves nothing.

mod agents;
mod llama;
mod managed;
mod mlx;
mod slots;
mod stage;
