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

/// A limit: `90 s`, `10 min`.
pub fn format_duration(limit: Duration) -> String {
    let seconds = limit.as_secs_f64();
    if seconds < 120.0 {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds / 60.0)
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

/// `1 file`, `2 files`.
pub fn plural(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
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
        assert_eq!(plural(1, "file"), "1 file");
    }
}
