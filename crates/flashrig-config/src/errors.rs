//! Errors as people read them.

use std::io;

/// An error with its causes, each said once: many errors quote their cause already.
pub fn error_chain(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// What kind of error it is, where the error names a temporary file: its random name tells nobody
/// anything.
pub fn without_temporary_name(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(_) => error,
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn a_cause_that_was_quoted_is_not_said_again() {
        let cause = anyhow!("disk full");
        let quoting: anyhow::Error = Err::<(), _>(cause)
            .context("cannot write: disk full; free some")
            .unwrap_err();
        assert_eq!(error_chain(&quoting), "cannot write: disk full; free some");
        let plain = Err::<(), _>(anyhow!("disk full"))
            .context("cannot write")
            .unwrap_err();
        assert_eq!(error_chain(&plain), "cannot write: disk full");
    }

    #[test]
    fn the_random_name_of_a_temporary_file_is_not_shown() {
        let nowhere = std::path::Path::new("/nowhere/at/all");
        let error = tempfile::NamedTempFile::new_in(nowhere).unwrap_err();
        assert!(error.to_string().contains(".tmp"), "{error:?}");
        let plain = without_temporary_name(error).to_string();
        assert_eq!(plain, "entity not found");
    }
}
