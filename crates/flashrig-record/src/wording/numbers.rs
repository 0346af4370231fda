//! Lists and counts within sentences.

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
