//! Single rules of the scheduler.

use super::*;
