//! temp
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
/// x
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// x
    pub name: String,
    /// x
    pub outcome: CheckOutcome,
}
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// x
    Passed,
    /// x
    Failed,
}
impl CheckResult {
    /// x
    pub fn words(&self) -> String {
        "x".into()
    }
}
