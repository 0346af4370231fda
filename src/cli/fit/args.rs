//! What is typed for `flashrig fit`. Options that a run is told by are optional here, so that
//! `--resume` can tell what was typed from what was left out.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::args::ServerArgs;
use crate::plan::rounds::{RoundsAsked, parse_rounds};
use flashrig_config::{Numbers, Sizes, parse_duration, parse_numbers, parse_sizes};
use flashrig_record::RecallRule;

/// `flashrig fit`.
#[derive(Clone, Debug, Args)]
pub struct FitArgs {
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
    /// Context lengths of the sessions in tokens, e.g. 32k,128k
    #[arg(long, allow_negative_numbers = true, value_name = "SIZES", value_parser = parse_sizes, required_unless_present = "resume")]
    pub contexts: Option<Sizes>,
    /// Numbers of sessions, e.g. 1..4 or 1,2,4,8; one session alone is always measured, since all
    /// others are compared with it [default: 1..4; with --search 1..64]
    #[arg(long, allow_negative_numbers = true, value_name = "NUMBERS", value_parser = parse_numbers)]
    pub sessions: Option<Numbers>,
    /// How often each combination is measured. `auto` measures each 4 to 12 times, and ends when its
    /// verdict is settled [default: 3 on a simulated server, auto otherwise]
    #[arg(long, allow_negative_numbers = true, value_name = "N|auto", value_parser = parse_rounds)]
    pub rounds: Option<RoundsAsked>,
    /// Begin no round after this time, e.g. 2h; implies --rounds auto
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_time: Option<Duration>,
    /// Search for the largest number of sessions that fits instead of measuring every number
    #[arg(long)]
    pub search: bool,
    /// Warm turns of each session, each of which asks for one hidden fact [default: 13]
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 1000), help_heading = "Sessions")]
    pub checks: Option<u32>,
    /// Tokens of each answer [default: 256]
    #[arg(long, value_name = "TOKENS", value_parser = flashrig_config::whole_number(16, 100_000), help_heading = "Sessions")]
    pub answer_tokens: Option<u32>,
    /// Pause of each session between its turns [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Sessions")]
    pub think: Option<Duration>,
    /// Delay between the starts of two sessions [default: 0s, all at once]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Sessions")]
    pub stagger: Option<Duration>,
    /// Seed of prompts, facts and the order of measuring [default: a new one for each run, so that
    /// no prompt is in the server's cache from an earlier run]
    #[arg(long, value_name = "N", help_heading = "Sessions")]
    pub seed: Option<u64>,
    /// Side requests a second while warm turns of two or more sessions run [default: 0, so that
    /// slowdowns are the sessions' own]; those during cold prefill are sent in any case
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "RATE",
        help_heading = "Side requests"
    )]
    pub side_rate: Option<f64>,
    /// Send no side requests at all
    #[arg(long, conflicts_with = "side_rate", help_heading = "Side requests")]
    pub no_side: bool,
    /// Questions that each session must answer right: a share such as 85% (to the nearest percent),
    /// all, or off [default: as many as one session alone gets right in this run]
    #[arg(long, value_name = "RULE", value_parser = parse_recall, help_heading = "Judgement")]
    pub recall: Option<RecallRule>,
    /// A combination passes up to this slowdown [default: 1.5]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        help_heading = "Judgement"
    )]
    pub pass_below: Option<f64>,
    /// A combination fails above this slowdown [default: 2]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "X",
        help_heading = "Judgement"
    )]
    pub fail_above: Option<f64>,
    /// Exit with 1 unless at least N sessions fit at every context length
    #[arg(long, value_name = "N", value_parser = flashrig_config::whole_number(1, 1024), help_heading = "Judgement")]
    pub expect: Option<u32>,
    /// Exit with 1 when a number of sessions is inconclusive
    #[arg(long, help_heading = "Judgement")]
    pub strict: bool,
    /// Longest wait for a first token; after that the server counts as stalled [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub first_token_limit: Option<Duration>,
    /// Continue a run that was stopped or killed; finished combinations are not repeated
    #[arg(long, value_name = "RUN", conflicts_with = "results")]
    pub resume: Option<PathBuf>,
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
}

/// Reads `85%`, `all` or `off`.
fn parse_recall(text: &str) -> Result<RecallRule, String> {
    let wrong = || format!("{text:?} is not a rule; write a share like 85%, all, or off");
    match text.trim() {
        "all" => Ok(RecallRule::All),
        "off" => Ok(RecallRule::Off),
        other => {
            let percent = other.strip_suffix('%').ok_or_else(wrong)?.trim_end();
            let percent: f64 = percent.parse().map_err(|_| wrong())?;
            if (0.0..=100.0).contains(&percent) {
                Ok(RecallRule::Share(percent / 100.0))
            } else {
                Err(wrong())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_rules_are_read_as_people_write_them() {
        assert_eq!(parse_recall("85%"), Ok(RecallRule::Share(0.85)));
        assert_eq!(parse_recall("all"), Ok(RecallRule::All));
        assert_eq!(parse_recall("off"), Ok(RecallRule::Off));
        for text in ["", "85", "101%", "-1%", "most", "NaN%"] {
            assert!(parse_recall(text).is_err(), "{text:?} was read");
        }
    }
}
