//! Counts, sizes and durations as people write and read them.

use std::time::Duration;

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

/// A duration that is only roughly known, as people read it: `45 s`, `12 min`, `3.5 h`.
pub fn format_rough(duration: Duration) -> String {
    match duration.as_secs() {
        s @ 0..90 => format!("{s} s"),
        s @ 90..5400 => format!("{} min", s.div_ceil(60)),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// A count with what is counted: `1 file`, `2 files`. Regular plurals only.
pub fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", format_count(count))
}

/// A count with its digits grouped in threes: `12,345`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Reads a whole number from `least` to `most`.
///
/// # Errors
/// The text is not a number, or is out of the range.
pub fn whole_number(
    least: u32,
    most: u32,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            format!(
                "give a whole number from {} to {}",
                format_count(least.into()),
                format_count(most.into())
            )
        })
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
    fn rough_durations_have_one_unit() {
        let shown = [5, 89, 90, 5399, 5400].map(|s| format_rough(Duration::from_secs(s)));
        assert_eq!(shown, ["5 s", "89 s", "2 min", "90 min", "1.5 h"]);
    }

    #[test]
    fn a_count_has_its_noun_in_the_right_number_and_its_digits_in_groups() {
        let shown = [0_u32, 1, 2, 999, 1000, 1_234_567].map(|n| plural(n, "file"));
        let wanted = [
            "0 files",
            "1 file",
            "2 files",
            "999 files",
            "1,000 files",
            "1,234,567 files",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_in_plain_english() {
        let read = whole_number(1, 1000);
        assert_eq!((read("1"), read("1000")), (Ok(1), Ok(1000)));
        for text in ["0", "1001", "-1", "two", "1.5", ""] {
            let refused = read(text).unwrap_err();
            assert_eq!(refused, "give a whole number from 1 to 1,000", "{text}");
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
