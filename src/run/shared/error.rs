//! Why a run could not be recorded.

use crate::store::StoreError;

/// A run that could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The results folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing was recorded.
    #[error("the run was not recorded")]
    Nothing,
}
