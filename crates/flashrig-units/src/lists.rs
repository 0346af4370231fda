//! Lists as people write them: `1,2,4`, `1..4`, `32k,128k`.

use super::parse_count;

/// The longest list; nobody types a longer one on purpose.
const MAX: usize = 1024;

/// Numbers of sessions or agents: ascending, each once, none of them 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(pub Vec<u32>);

/// Sizes in tokens: in the order typed, each once, none of them 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

/// Reads numbers: `1,2,4`, `1..4` (both ends included) or both mixed.
///
/// # Errors
/// Says what was read and which forms are understood.
pub fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let wrong = |why: &str| format!("{text:?} {why}; write it like 1,2,4 or 1..4");
    let number = |part: &str| match part.trim().parse::<u32>() {
        Ok(0) => Err(wrong("has a 0; give numbers of 1 or more")),
        Ok(number) => Ok(number),
        Err(_) => Err(wrong("is not a list of whole numbers above 0")),
    };
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => numbers.push(number(part)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
                if from > to {
                    return Err(wrong("has a range that runs backwards"));
                }
                if (to - from) as usize >= MAX {
                    return Err(wrong("has a range of more than 1024 numbers"));
                }
                numbers.extend(from..=to);
            }
        }
        if numbers.len() > MAX {
            return Err(wrong("has more than 1024 numbers"));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Numbers(numbers))
}

/// Reads sizes in tokens: `32k,128k`.
///
/// # Errors
/// Says what was read and which forms are understood.
pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Vec::new();
    for part in text.split(',') {
        let size = parse_count(part)?;
        if sizes.contains(&size) {
            return Err(format!(
                "{text:?} has {} twice; give each size once",
                part.trim()
            ));
        }
        sizes.push(size);
    }
    Ok(Sizes(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_lists_and_as_ranges_and_come_out_ascending() {
        assert_eq!(parse_numbers("4,1,2,2"), Ok(Numbers(vec![1, 2, 4])));
        assert_eq!(parse_numbers("1..4"), Ok(Numbers(vec![1, 2, 3, 4])));
        assert_eq!(parse_numbers("8, 1..=3"), Ok(Numbers(vec![1, 2, 3, 8])));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused_with_the_forms_that_do() {
        for text in [
            "", "0", "0..2", "1,,2", "-1", "1.5", "4..1", "x", "1..", "1..99999",
        ] {
            let error = parse_numbers(text).unwrap_err();
            assert!(error.ends_with("write it like 1,2,4 or 1..4"), "{error}");
        }
    }

    #[test]
    fn sizes_keep_the_order_typed() {
        assert_eq!(parse_sizes("128k, 32k"), Ok(Sizes(vec![131_072, 32_768])));
        for text in ["", "32kk", "0", "-1", "32k,", "32k,32768"] {
            assert!(parse_sizes(text).is_err(), "{text:?} was read");
        }
    }
}
