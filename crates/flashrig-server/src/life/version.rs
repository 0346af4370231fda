//! The version that a server's program tells when it is asked for it.

use std::ffi::OsString;
use std::time::Duration;

use super::launch::Launch;
use flashrig_process::{ShortCommand, run_short};

/// Python programs import for many seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// The version of the program; `None` when it tells none.
pub(crate) async fn program_version(launch: &Launch) -> Option<String> {
    let (args, pattern) = launch.recipe.version.as_ref()?;
    let command = ShortCommand {
        program: launch.program.clone(),
        args: args.iter().map(OsString::from).collect(),
        env: launch.env(0),
    };
    let output = match run_short(command, LIMIT).await {
        Ok(output) => output,
        Err(error) => {
            tracing::warn!(%error, "the server's program tells no version");
            return None;
        }
    };
    match pattern {
        Some(pattern) => {
            let found = pattern.captures(&output.text)?;
            Some(found.get(1)?.as_str().to_owned())
        }
        None if !output.status.is_success() => None,
        None => {
            let mut lines = output.text.lines().map(str::trim);
            lines.find(|line| !line.is_empty()).map(str::to_owned)
        }
    }
    .filter(|version| !version.is_empty() && !version.contains("unknown"))
}
