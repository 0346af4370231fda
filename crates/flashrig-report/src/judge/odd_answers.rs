//! Answers that contradict themselves, or that times and speeds cannot be read from.

use flashrig_record::{Attempt, OddAnswers, Role};

/// The oddities of a session's answers that matter to figures or to the outcome, most often first.
pub fn odd_answers(attempts: &[Attempt]) -> Vec<OddAnswers> {
    let mut found: Vec<OddAnswers> = Vec::new();
    let answers = attempts.iter().filter(|a| a.role != Role::Probe);
    for oddity in answers.flat_map(|a| &a.oddities) {
        if oddity.meaning().is_none() {
            continue;
        }
        match found.iter_mut().find(|known| known.oddity == *oddity) {
            Some(known) => known.answers += 1,
            None => found.push(OddAnswers {
                oddity: oddity.clone(),
                answers: 1,
            }),
        }
    }
    found.sort_by_key(|odd| std::cmp::Reverse(odd.answers));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashrig_record::testing::attempt;
    use flashrig_record::{Oddity, Outcome};

    #[test]
    fn oddities_are_counted_and_those_that_only_clients_care_about_left_out() {
        let mut a = attempt(Role::Main, Outcome::Complete, 0.0, Some(1.0), 2.0);
        a.oddities = vec![Oddity::IdOnlyOnce, Oddity::AnswerBurst];
        let mut b = a.clone();
        b.oddities = vec![Oddity::AnswerBurst, Oddity::ToolCallAsText];
        let found = odd_answers(&[a, b]);
        let found: Vec<(&str, u64)> = found.iter().map(|o| (o.oddity.code(), o.answers)).collect();
        assert_eq!(found, [("answer_burst", 2), ("tool_call_as_text", 1)]);
    }
}
