//! What all connections of a guard share.

use super::allow::AllowList;
use super::counts::EgressCounts;

/// What every connection shares.
pub(super) struct Shared {
    pub(super) label: String,
    pub(super) allow: AllowList,
    pub(super) counts: EgressCounts,
}
