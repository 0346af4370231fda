//! macOS: nothing is read of the whole machine yet, so that all of it is unknown. `host_processor_info`
//! and `proc_pidfdinfo` would tell, by calls that need unsafe code.

use crate::machine::MachineCounters;

/// Counters of the machine, since it was started: unknown.
pub(crate) fn machine_counters() -> MachineCounters {
    MachineCounters::default()
}

/// The process that listens on a TCP port: unknown.
pub(crate) fn listener(_port: u16) -> Option<u32> {
    None
}
