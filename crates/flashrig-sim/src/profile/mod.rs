//! What the simulated server is like: the `[sim]` table as written, and its validated form.

mod decode;
mod size;
mod table;
#[cfg(test)]
mod tests;
mod timing;

pub use size::ByteSize;
pub use table::{DecodePoint, MemoryRefusal, PrefillOrder, SimTable};
pub use timing::Timing;

/// A value of the `[sim]` table that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("sim.{field} is {value}, but {rule}")]
pub struct ProfileError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What would be right.
    pub rule: &'static str,
}

/// A validated profile.
#[derive(Clone, Debug)]
pub struct SimProfile {
    /// Profile name, as `GET /version` reports it.
    pub name: String,
    /// The one model name that is served.
    pub model: String,
    /// Tokens that one request may use, prompt and answer together.
    pub context: u64,
    /// Timing, memory and faults.
    pub timing: Timing,
}

impl SimProfile {
    /// Validates a profile; `context` is that of the whole server.
    ///
    /// # Errors
    /// The first value that cannot be, with its rule.
    pub fn new(
        name: impl Into<String>,
        model: impl Into<String>,
        context: u64,
        table: &SimTable,
    ) -> Result<Self, ProfileError> {
        let timing = Timing::try_from(table)?;
        let context = if table.context_per_slot {
            context / u64::from(table.max_concurrent)
        } else {
            context
        };
        check(
            context > 0,
            "context_per_slot",
            true,
            "the context is too small to be divided among the slots",
        )?;
        Ok(Self {
            name: name.into(),
            model: model.into(),
            context,
            timing,
        })
    }
}

fn check(
    ok: bool,
    field: &'static str,
    value: impl ToString,
    rule: &'static str,
) -> Result<(), ProfileError> {
    if ok {
        Ok(())
    } else {
        Err(ProfileError {
            field,
            value: value.to_string(),
            rule,
        })
    }
}

/// Written so that a NaN fails.
fn not_negative(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}
