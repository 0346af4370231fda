//! Names that people mistype.

/// The known name nearest to `name`, when one is near enough to be what was meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .filter(|(distance, k)| *distance * 2 <= k.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// What is said of a name that does not exist, in one form everywhere:
/// `unknown agent "x"; known: a, b; did you mean "a"?`.
pub fn unknown<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let near = nearest(name, known.clone());
    unknown_but_near(kind, name, known, near)
}

/// The same, with the name that was probably meant found by the caller.
pub(super) fn unknown_but_near<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    near: Option<&str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let known = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(", "),
    };
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    format!("unknown {kind} {name:?}; known: {known}{hint}")
}

#[cfg(test)]
mod tests {
    use super::{nearest, unknown};

    #[test]
    fn an_unknown_name_is_answered_with_all_names_and_the_nearest() {
        let tasks = ["add-flag", "fix-bug"];
        assert_eq!(
            unknown("task", "fixbug", tasks),
            "unknown task \"fixbug\"; known: add-flag, fix-bug; did you mean \"fix-bug\"?"
        );
        assert_eq!(
            unknown("task", "refactor", tasks),
            "unknown task \"refactor\"; known: add-flag, fix-bug"
        );
        assert_eq!(unknown("task", "x", []), "unknown task \"x\"; known: none");
    }

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        assert_eq!(nearest("fix-bgu", ["fix-bug", "add-flag"]), Some("fix-bug"));
        assert_eq!(nearest("fixbug", ["fix-bug", "add-flag"]), Some("fix-bug"));
        assert_eq!(
            nearest("ad-flga", ["fix-bug", "add-flag"]),
            Some("add-flag")
        );
        assert_eq!(nearest("refactor", ["fix-bug", "add-flag"]), None);
    }
}
