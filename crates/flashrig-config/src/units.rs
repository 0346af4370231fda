//! Counts as people write them.

use flashrig_record::wording::format_count;

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
