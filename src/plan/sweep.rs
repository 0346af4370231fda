//! The plan of a sweep: which combinations of settings are measured, and in which order. Pure.
//!
//! Rounds are outermost: every combination is measured once before any is measured again, so that
//! a server or a machine that changes over the hours does so for all of them, and figures of one
//! round can be compared. Within a round the order is shuffled anew, so that no combination always
//! follows the same other one.

use std::collections::BTreeSet;

use super::grid::Random;
use flashrig_record::SweepSetting;

/// The most combinations of a sweep; nobody waits for more on purpose.
pub const MAX_COMBINATIONS: usize = 256;

/// Settings that make no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// `--set` without a value.
    #[error("--set {0:?} has no values; write it like {name}=1,2", name = name_or_key(.0))]
    NoValues(String),
    /// A value is empty.
    #[error(
        "--set {0:?} has an empty value; write it like key=1,2, with \"\" around a value that is text with a comma"
    )]
    EmptyValue(String),
    /// A value comes twice.
    #[error("--set {set:?} has the value {value} twice; give each value once")]
    SameValue {
        /// As typed.
        set: String,
        /// The value.
        value: String,
    },
    /// A setting comes twice.
    #[error("--set {0} comes twice; give all its values in one: {0}=1,2")]
    SameName(String),
    /// Nothing to compare.
    #[error(
        "there is only one combination, and nothing to compare it with; give a setting two values or more, such as --set {0}=1,2"
    )]
    OnlyOne(String),
    /// More than anybody waits for.
    #[error(
        "these settings have {count} combinations, and a sweep measures at most {MAX_COMBINATIONS}; \
         give fewer values, or --one-at-a-time"
    )]
    TooMany {
        /// So many.
        count: String,
    },
}

fn name_or_key(text: &str) -> &str {
    let name = text.split('=').next().unwrap_or_default().trim();
    if name.is_empty() { "key" } else { name }
}

/// Reads `NAME=V1,V2,…`. Commas within brackets, braces or quotes do not part values.
///
/// # Errors
/// It has no value, an empty one, or one twice.
pub fn parse_setting(text: &str) -> Result<SweepSetting, PlanError> {
    let (name, list) = text
        .split_once('=')
        .filter(|(name, list)| !name.trim().is_empty() && !list.trim().is_empty())
        .ok_or_else(|| PlanError::NoValues(text.to_owned()))?;
    let values = parted(list);
    if values.iter().any(String::is_empty) {
        return Err(PlanError::EmptyValue(text.to_owned()));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = values.iter().find(|value| !seen.insert(value.as_str())) {
        return Err(PlanError::SameValue {
            set: text.to_owned(),
            value: twice.clone(),
        });
    }
    Ok(SweepSetting {
        name: name.trim().to_owned(),
        values,
    })
}

fn parted(list: &str) -> Vec<String> {
    let (mut values, mut value) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0_u32, None);
    for c in list.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                values.push(std::mem::take(&mut value).trim().to_owned());
                continue;
            }
            _ => {}
        }
        value.push(c);
    }
    values.push(value.trim().to_owned());
    values
}

/// The combinations, each with one value for every setting. The first has the first value of each.
///
/// # Errors
/// A setting comes twice, or there are too few combinations or too many.
pub fn combinations(
    settings: &[SweepSetting],
    one_at_a_time: bool,
) -> Result<Vec<Vec<String>>, PlanError> {
    let mut names = BTreeSet::new();
    // `sim.cache_ram` and `cache_ram` are one setting.
    let plain = |name: &'_ str| name.strip_prefix("sim.").unwrap_or(name).to_owned();
    if let Some(twice) = settings.iter().find(|s| !names.insert(plain(&s.name))) {
        return Err(PlanError::SameName(twice.name.clone()));
    }
    let lengths = settings.iter().map(|s| s.values.len());
    let count = if one_at_a_time {
        Some(1 + lengths.map(|n| n.saturating_sub(1)).sum::<usize>())
    } else {
        lengths.into_iter().try_fold(1_usize, usize::checked_mul)
    };
    match count {
        Some(count) if count <= 1 => {
            let name = settings.first().map_or("key", |s| s.name.as_str());
            return Err(PlanError::OnlyOne(name.to_owned()));
        }
        Some(count) if count <= MAX_COMBINATIONS => {}
        count => {
            return Err(PlanError::TooMany {
                count: count.map_or_else(|| "countless".to_owned(), |n| n.to_string()),
            });
        }
    }
    Ok(if one_at_a_time {
        alone(settings)
    } else {
        grid(settings)
    })
}

/// The last setting changes fastest, as people write tables.
fn grid(settings: &[SweepSetting]) -> Vec<Vec<String>> {
    settings.iter().fold(vec![Vec::new()], |all, setting| {
        let with = |begun: &Vec<String>, value: &String| {
            let mut longer = begun.clone();
            longer.push(value.clone());
            longer
        };
        all.iter()
            .flat_map(|begun| setting.values.iter().map(move |value| with(begun, value)))
            .collect()
    })
}

fn alone(settings: &[SweepSetting]) -> Vec<Vec<String>> {
    let first: Vec<String> = settings
        .iter()
        .filter_map(|s| s.values.first().cloned())
        .collect();
    let others = settings.iter().enumerate().flat_map(|(index, setting)| {
        let first = &first;
        setting.values.iter().skip(1).map(move |value| {
            let mut changed = first.clone();
            changed[index].clone_from(value);
            changed
        })
    });
    std::iter::once(first.clone()).chain(others).collect()
}

/// One combination in one round, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Round.
    pub round: u32,
    /// Combination.
    pub combination: u32,
}

/// All units in their order.
pub fn steps(combinations: u32, rounds: u32, seed: u64) -> Vec<Step> {
    (1..=rounds)
        .flat_map(|round| {
            let mut random = Random::new(seed ^ (u64::from(round) << 32));
            let mut order: Vec<u32> = (1..=combinations).collect();
            random.shuffle(&mut order);
            order
                .into_iter()
                .map(move |combination| Step { round, combination })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(texts: &[&str]) -> Vec<SweepSetting> {
        texts.iter().map(|t| parse_setting(t).unwrap()).collect()
    }

    #[test]
    fn values_are_parted_by_commas_but_not_within_brackets_and_quotes() {
        let read = |text: &str| parse_setting(text).unwrap().values;
        assert_eq!(read("cache_ram=4GB, 16GB"), ["4GB", "16GB"]);
        assert_eq!(
            read("decode=[{ batch = 1, step_ms = 10 }],[{batch=1,step_ms=20}]"),
            ["[{ batch = 1, step_ms = 10 }]", "[{batch=1,step_ms=20}]"]
        );
        assert_eq!(read("name=\"a,b\",'c,d'"), ["\"a,b\"", "'c,d'"]);
    }

    #[test]
    fn empty_and_repeated_values_are_refused_with_what_was_typed() {
        for (text, message) in [
            ("parallel", "write it like parallel=1,2"),
            ("parallel=", "write it like parallel=1,2"),
            ("=1", "write it like key=1,2"),
            ("parallel=1,,2", "\"parallel=1,,2\" has an empty value"),
            ("parallel=1,", "has an empty value"),
            ("parallel=1,2,1", "has the value 1 twice"),
        ] {
            let error = parse_setting(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn the_grid_has_every_combination_once_and_begins_with_the_first_values() {
        let all = combinations(&settings(&["a=1,2", "b=x,y,z"]), false).unwrap();
        assert_eq!(all.len(), 6);
        assert_eq!(all[0], ["1", "x"]);
        assert_eq!(all[1], ["1", "y"]);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 6);
    }

    #[test]
    fn one_at_a_time_changes_one_setting_of_the_first_combination() {
        let all = combinations(&settings(&["a=1,2", "b=x,y,z"]), true).unwrap();
        assert_eq!(all, [["1", "x"], ["2", "x"], ["1", "y"], ["1", "z"]]);
    }

    #[test]
    fn one_combination_a_repeated_name_and_too_many_are_refused() {
        let refused = |texts: &[&str], alone| {
            let refused = combinations(&settings(texts), alone).unwrap_err();
            refused.to_string()
        };
        assert!(refused(&["a=1"], false).contains("such as --set a=1,2"));
        assert!(refused(&["a=1", "sim.a=2"], false).contains("sim.a comes twice"));
        let many: Vec<String> = (0..70)
            .map(|n| format!("k{n}=1,2,3,4,5,6,7,8,9,10"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(&many, false).contains("countless combinations"));
        assert!(refused(&many[..3], false).contains("1000 combinations"));
        assert!(refused(&many, true).contains("631 combinations"));
    }

    #[test]
    fn every_combination_comes_once_a_round_in_an_order_that_the_seed_decides() {
        let all = steps(5, 4, 7);
        for (index, round) in all.chunks(5).enumerate() {
            assert!(round.iter().all(|s| s.round as usize == index + 1));
            let distinct: BTreeSet<_> = round.iter().map(|s| s.combination).collect();
            assert_eq!(distinct.len(), 5);
        }
        assert_eq!(all, steps(5, 4, 7));
        assert_ne!(all, steps(5, 4, 8));
        let order = |round: usize| -> Vec<u32> {
            let units = &all[round * 5..round * 5 + 5];
            units.iter().map(|s| s.combination).collect()
        };
        assert!((1..4).any(|round| order(round) != order(0)));
    }
}
