//! Counts as people write them.

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

/// A count of tokens as people read it: `32K`, `1M`, else the number.
pub fn format_tokens(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        n if n % (1024 * 1024) == 0 => format!("{}M", n / (1024 * 1024)),
        n if n % 1024 == 0 => format!("{}K", n / 1024),
        n => n.to_string(),
    }
}

/// A duration that may be short, as people read it: `12 ms`, `1.23 s`, `45.6 s`, `2 min 03 s`.
pub fn format_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s => {
            let whole = s.round();
            format!("{} min {:02} s", (whole / 60.0).floor(), whole % 60.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_or_so_at_every_length() {
        let message = [0.0, 0.0123, 0.9996, 9.996, 45.64, 99.96, 3599.8].map(format_seconds);
        let wanted = [
            "0 ms",
            "12 ms",
            "1.00 s",
            "10.0 s",
            "45.6 s",
            "1 min 40 s",
            "60 min 00 s",
        ];
        assert_eq!(message, wanted);
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
