//! Numbers and lists as people read them.

use std::time::Duration;

/// A count of tokens: `32K`, `1M` (units of 1,024), else the number.
pub fn format_tokens(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        n if n % (1024 * 1024) == 0 => format!("{}M", n / (1024 * 1024)),
        n if n % 1024 == 0 => format!("{}K", n / 1024),
        n => n.to_string(),
    }
}

/// A duration in seconds that may be short: `12 ms`, `1.23 s`, `45.6 s`, `2 min 03 s`.
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

/// A limit: `0.5 s`, `90 s`, `10 min`, `2 min 05 s`.
pub fn format_duration(limit: Duration) -> String {
    match limit.as_secs() {
        0..120 => format!("{} s", limit.as_secs_f64()),
        s if s.is_multiple_of(60) => format!("{} min", s / 60),
        s => format!("{} min {:02} s", s / 60, s % 60),
    }
}

/// A duration that is only roughly known: `45 s`, `12 min`, `3.5 h`.
pub fn format_rough(duration: Duration) -> String {
    match duration.as_secs() {
        s @ 0..90 => format!("{s} s"),
        s @ 90..5400 => format!("{} min", s.div_ceil(60)),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// A count with its digits in groups of three: `12,345`.
pub fn format_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with what is counted: `1 file`, `2 files`, `1,234 files`. Regular plurals only.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", format_count(count))
}

/// `once`, `twice`, `3 times`.
pub fn times_over(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// Names as a list: `a, b and c`.
pub fn in_a_row<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(S::as_ref).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
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
    fn digits_are_grouped_and_names_are_listed() {
        assert_eq!(
            [7, 1234, 1_234_567].map(format_count),
            ["7", "1,234", "1,234,567"]
        );
        assert_eq!(in_a_row(&["a", "b", "c"]), "a, b and c");
        assert_eq!(in_a_row(&["a"]), "a");
        let files = [0, 1, 2, 1000].map(|n| plural(n, "file"));
        assert_eq!(files, ["0 files", "1 file", "2 files", "1,000 files"]);
    }

    #[test]
    fn limits_are_exact_and_rough_durations_have_one_unit() {
        let limits = [500, 90_000, 600_000, 125_000];
        assert_eq!(
            limits.map(|ms| format_duration(Duration::from_millis(ms))),
            ["0.5 s", "90 s", "10 min", "2 min 05 s"]
        );
        assert_eq!(
            [5, 89, 90, 5399, 5400].map(|s| format_rough(Duration::from_secs(s))),
            ["5 s", "89 s", "2 min", "90 min", "1.5 h"]
        );
    }
}
