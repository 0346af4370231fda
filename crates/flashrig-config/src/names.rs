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

#[cfg(test)]
mod tests {
    use super::nearest;

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
