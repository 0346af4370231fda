//! Servers that flashrig starts itself. The real process is flashrig's own simulated server; what
//! goes wrong is played by small scripts.

mod ends;
mod faults;
mod life;
mod logs;
mod place;
mod profiles;
mod runs;
mod starts;
