//! What every kind of run needs: the bus, the wish to stop, the server's life, folders, the record's
//! words on instrument and machine.

pub mod bus;
pub mod command_line;
pub mod error;
pub mod instrument;
pub mod reach;
pub mod scratch;
pub mod server_life;
pub mod setting;
pub mod stalled;
pub mod stop;
pub mod warm_up;

pub use error::RunError;
