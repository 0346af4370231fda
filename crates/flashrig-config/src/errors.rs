//! Errors in words.

/// An error with its causes, each said once: many errors quote their cause already.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use anyhow::{Context as _, anyhow};

    #[test]
    fn a_cause_that_was_quoted_is_not_said_again() {
        let cause = anyhow!("disk full");
        let quoting: anyhow::Error = Err::<(), _>(cause)
            .context("cannot write: disk full; free some")
            .unwrap_err();
        assert_eq!(in_words(&quoting), "cannot write: disk full; free some");
        let plain = Err::<(), _>(anyhow!("disk full"))
            .context("cannot write")
            .unwrap_err();
        assert_eq!(in_words(&plain), "cannot write: disk full");
    }
}
