//! From what was typed for `fit` to plain data.

use super::args::FitArgs;
use crate::plan::fit::Asked;
use crate::run::load::fit::Request;

/// What was asked for.
pub fn request(args: FitArgs) -> Request {
    let server = args.server.request();
    Request {
        asked: Asked {
            contexts: args.contexts.map(|sizes| sizes.0),
            sessions: args.sessions.map(|numbers| numbers.0),
            rounds: args.rounds,
            max_time: args.max_time,
            search: args.search,
            checks: args.checks,
            answer_tokens: args.answer_tokens,
            think: args.think,
            stagger: args.stagger,
            seed: args.seed,
            side_rate: args.side_rate,
            no_side: args.no_side,
            recall: args.recall,
            pass_below: args.pass_below,
            fail_above: args.fail_above,
            expect: args.expect,
            first_token_limit: args.first_token_limit,
            reset: server.reset,
        },
        server,
        resume: args.resume,
        results: args.results,
    }
}
