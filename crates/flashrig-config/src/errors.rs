//! Errors in words.

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

#[cfg(test)]
mod tests {
    use super::error_chain;
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
}
