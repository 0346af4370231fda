//! Words, facts and questions, all from a seed.
//!
//! Every line of filler holds the same words in an order of its own. Tokenizers cut text into
//! words first, so every line costs the same number of tokens whatever the model, and a prompt can
//! be brought to its size without knowing the tokenizer; the order makes every line unlike every
//! other, so that no prompt shares its beginning with another.

/// Words of a line: common, and of the same length, so that their bytes add up alike too.
const WORDS: [&str; 12] = [
    "amber", "river", "stone", "cloud", "light", "paper", "table", "green", "horse", "music",
    "ocean", "bread",
];

/// Number of words in a line.
pub(super) const LINE_WORDS: u32 = 12;

/// A good mixing of the bits of `value` (the finaliser of SplitMix64).
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Appends line `number` of the text of `seed`, of its first `words` words, with the line's end as
/// JSON writes it.
pub(super) fn line(seed: u64, number: u64, words: u32, out: &mut Vec<u8>) {
    let mut order = WORDS;
    let mut state = mix(seed ^ mix(number));
    out.push(b'-');
    for place in 0..order.len().min(words as usize) {
        state = mix(state);
        let left = (order.len() - place) as u64;
        #[expect(clippy::cast_possible_truncation, reason = "below the number of words")]
        let other = place + (state % left) as usize;
        order.swap(place, other);
        out.push(b' ');
        out.extend_from_slice(order[place].as_bytes());
    }
    out.extend_from_slice(br"\n");
}

/// A fact: its key is the same in every session of a run, its code is not, so that an answer from
/// another session's prompt is a wrong one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// `K` and four digits.
    pub(super) key: String,
    /// Two capital letters, a dash, five digits.
    pub(super) code: String,
}

/// Fact `number` of a prompt.
pub(super) fn fact(seed: u64, salt: u64, number: u32) -> Fact {
    // 137 and 10,000 have no common divisor, so no key comes twice.
    let key = (mix(seed) % 10_000 + 137 * u64::from(number)) % 10_000;
    let bits = mix(salt ^ mix(u64::from(number) ^ 0xfac7));
    let letter = |shift: u32| char::from(b'A' + ((bits >> shift) % 26) as u8);
    let digits = 10_000 + (bits >> 32) % 90_000;
    Fact {
        key: format!("K{key:04}"),
        code: format!("{}{}-{digits}", letter(0), letter(8)),
    }
}

impl Fact {
    /// Appends the line that tells it, with its end as JSON writes it.
    pub(super) fn report(&self, out: &mut Vec<u8>) {
        let Self { key, code } = self;
        out.extend_from_slice(format!("Fact {key}: the code is {code}.\\n").as_bytes());
    }

    /// Appends the question.
    pub(super) fn ask(&self, out: &mut Vec<u8>) {
        let key = &self.key;
        let words = format!("What is the code of fact {key}? Answer with the code only.");
        out.extend_from_slice(words.as_bytes());
    }

    /// Whether an answer has it.
    pub(super) fn is_in(&self, answer: &str) -> bool {
        answer.contains(&self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn text(seed: u64, number: u64, words: u32) -> String {
        let mut out = Vec::new();
        line(seed, number, words, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_has_the_same_words_in_an_order_of_its_own() {
        let mut seen = HashSet::new();
        for number in 0..2000 {
            let line = text(7, number, LINE_WORDS);
            let mut words: Vec<&str> = line.trim_end_matches("\\n")[2..].split(' ').collect();
            words.sort_unstable();
            let mut all = WORDS;
            all.sort_unstable();
            assert_eq!(words, all);
            assert!(seen.insert(line), "line {number} came twice");
        }
    }

    #[test]
    fn a_seed_gives_the_same_text_again_and_another_seed_another_from_the_first_line_on() {
        assert_eq!(text(1, 0, LINE_WORDS), text(1, 0, LINE_WORDS));
        let firsts: HashSet<String> = (0..1000).map(|seed| text(seed, 0, LINE_WORDS)).collect();
        assert_eq!(firsts.len(), 1000);
    }

    #[test]
    fn a_short_line_is_the_beginning_of_the_long_one() {
        let whole = text(3, 9, LINE_WORDS);
        let short = text(3, 9, 4);
        assert!(whole.starts_with(short.trim_end_matches("\\n")));
        assert_eq!(text(3, 9, 0), "-\\n");
    }

    #[test]
    fn keys_are_alike_in_all_sessions_and_codes_are_not() {
        let mut keys = HashSet::new();
        for number in 0..10_000 {
            let (one, other) = (fact(5, 1, number), fact(5, 2, number));
            assert_eq!(one.key, other.key);
            assert_ne!(one.code, other.code);
            assert!(keys.insert(one.key), "key {number} came twice");
        }
    }

    #[test]
    fn facts_and_questions_have_the_form_that_is_looked_for() {
        let fact = fact(5, 1, 3);
        let mut out = Vec::new();
        fact.report(&mut out);
        fact.ask(&mut out);
        let text = String::from_utf8(out).unwrap();
        let form = regex::Regex::new(
            r"^Fact (K\d{4}): the code is [A-Z]{2}-\d{5}\.\\nWhat is the code of fact (K\d{4})\? Answer with the code only\.$",
        )
        .unwrap();
        let found = form.captures(&text).expect(&text);
        assert_eq!(found[1], found[2]);
        assert!(fact.is_in(&format!("It is {}.", fact.code)));
        assert!(!fact.is_in("AB-1234"));
    }
}
