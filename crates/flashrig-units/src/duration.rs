//! Durations as people write them.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A bare number: the unit is not guessed.
    #[error("`{0}` has no unit; write it like `{0}s` or `{0}m`")]
    NoUnit(String),
    /// Less than nothing.
    #[error("`{0}` is negative; a duration counts from 0 up")]
    Negative(String),
    /// Anything else.
    #[error("`{0}` is not a duration; write it like `90s`, `10m` or `1h30m`")]
    Unreadable(String),
}

/// Reads a duration such as `90s`, `10m`, `1h30m` or `1.5h`.
///
/// # Errors
/// When the text has no unit, is negative or cannot be read.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DurationError::NoUnit(text.to_owned()));
    }
    let unreadable = || DurationError::Unreadable(text.to_owned());
    // The parser also reads ISO 8601 (`PT90S`), which nobody types on purpose.
    if text.starts_with(['P', 'p', '+']) {
        return Err(unreadable());
    }
    let signed: jiff::SignedDuration = text.parse().map_err(|_| unreadable())?;
    Duration::try_from(signed).map_err(|_| DurationError::Negative(text.to_owned()))
}

/// A limit as people write it: `90 s`, `10 min`.
pub fn format_duration(limit: Duration) -> String {
    match limit.as_secs() {
        0..120 => format!("{} s", limit.as_secs_f64()),
        s if s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{} min {:02} s", s / 60, s % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shown_exactly() {
        let shown = [500, 90_000, 600_000, 125_000].map(Duration::from_millis);
        let wanted = ["0.5 s", "90 s", "10 min", "2 min 05 s"];
        assert_eq!(shown.map(format_duration), wanted);
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("10m", 600.0),
            ("1h30m", 5400.0),
            ("1h 30m", 5400.0),
            ("1.5h", 5400.0),
            ("250ms", 0.25),
            ("0s", 0.0),
            (" 2m ", 120.0),
        ] {
            let read = parse_duration(text).map(|d| d.as_secs_f64());
            assert_eq!(read, Ok(seconds), "{text}");
        }
    }

    #[test]
    fn a_unit_is_never_guessed() {
        assert_eq!(
            parse_duration("90").unwrap_err().to_string(),
            "`90` has no unit; write it like `90s` or `90m`"
        );
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "soon", "s", "10x", "PT90S", "1h30", "32kk", "+5s"] {
            assert!(
                matches!(parse_duration(text), Err(DurationError::Unreadable(_))),
                "{text}"
            );
        }
        assert_eq!(
            parse_duration("-5s"),
            Err(DurationError::Negative("-5s".into()))
        );
    }
}
