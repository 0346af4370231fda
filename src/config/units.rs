//! Durations and counts as people write them.

use std::time::Duration;

/// Reads `90s`, `10m`, `1h30m`, `250ms`. A number without a unit is refused: it could mean
/// anything.
///
/// # Errors
/// Says what was read and which forms are understood.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write it like 250ms, 90s, 10m or 1h30m");
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |i| digits + i);
        let factor = match &rest[digits..unit_end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        total += Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())?;
        rest = &rest[unit_end..];
    }
    Ok(total)
}

/// Reads a count of tokens: `4096`, `32k` (1,024 each), `1m`.
///
/// # Errors
/// Says what was read and which forms are understood.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of tokens; write it like 4096, 32k or 1m");
    let text_trimmed = text.trim();
    let (digits, factor) = match text_trimmed.char_indices().last() {
        Some((i, 'k' | 'K')) => (&text_trimmed[..i], 1024),
        Some((i, 'm' | 'M')) => (&text_trimmed[..i], 1024 * 1024),
        _ => (text_trimmed, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(factor)
        .filter(|n| *n > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
    }

    #[test]
    fn a_bare_number_an_unknown_unit_or_nothing_is_no_duration() {
        for text in ["90", "", "10x", "s", "-5s", "1..5s", "5ss"] {
            assert!(parse_duration(text).is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn counts_are_read_in_units_of_1024() {
        assert_eq!(parse_count("32k"), Ok(32_768));
        assert_eq!(parse_count("1m"), Ok(1_048_576));
        for text in ["32kk", "0", "", "k", "-1", "1.5k"] {
            assert!(parse_count(text).is_err(), "{text:?} was read");
        }
    }
}
