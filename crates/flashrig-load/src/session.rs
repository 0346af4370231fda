//! A session: a cold turn, then warm ones.
//!
//! The first prompt is shorter than the context by what the later turns will append, so that the
//! last turn's prompt and answer still fit into the context asked for.

use super::body::{Conversation, Output};
use super::filler::{self, Fact};
use super::prompt::{QUESTION_LINES, Recipe};
use super::sizing::{self, Shape};
use super::{Answer, Ask, Client, LoadError};
use flashrig_clock::Seconds;
use flashrig_record::{Attempt, Calibration, Oddity, Outcome, Role, Turn};

/// Tokens that a turn may come out longer than counted: an answer is cut into tokens anew when it
/// comes back as a message.
const TURN_MARGIN: f64 = 2.0;

/// What a session is made of.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// Name, for its rows.
    pub id: String,
    /// Tokens that the last turn's prompt and answer come to.
    pub context_tokens: u64,
    /// Warm turns, each with a question. With 0 there is only the cold turn.
    pub checks: u32,
    /// Tokens of each answer.
    pub answer_tokens: u32,
    /// Seed of words and of the facts' keys: the same for all sessions of a run.
    pub seed: u64,
    /// Seed of what is unlike for each session, round and cell; see [`salt`].
    pub salt: u64,
    /// Whether all prompts of this seed begin alike, and differ only at the end.
    pub shared_prefix: bool,
}

/// A salt from what tells a session from every other one, such as round, context, number of
/// sessions and place among them.
pub fn salt(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(filler::mix(parts.len() as u64), |salt, part| {
            filler::mix(salt ^ filler::mix(*part))
        })
}

/// A session whose next body is ready, or is made before its clock starts.
#[derive(Debug)]
pub struct Prepared {
    plan: SessionPlan,
    recipe: Recipe,
    talk: Conversation,
    shape: Shape,
    /// Whether the first prompt was built for the size asked for, and not for a corrected one.
    uncorrected: bool,
    first: Option<Ask>,
    role: Role,
    calibration: Calibration,
    /// Tokens of the latest prompt and its answer, by the server's count.
    used: Option<u64>,
    /// By how many tokens the next prompt was expected to be longer than what was used.
    expected: f64,
    /// The most by which a turn came out longer than expected.
    drift: f64,
}

impl Prepared {
    /// Builds the first prompt.
    ///
    /// # Errors
    /// The context leaves no room for the turns.
    pub fn new(
        client: &Client,
        calibration: &Calibration,
        plan: SessionPlan,
    ) -> Result<Self, LoadError> {
        let later = later_tokens(calibration, &plan);
        let tokens = (plan.context_tokens as f64 - later).floor();
        if sizing::parts(calibration, tokens, plan.checks).is_none() {
            return Err(LoadError::TooSmall {
                context_tokens: plan.context_tokens,
                needed: (later + calibration.envelope_tokens).ceil() as u64,
            });
        }
        Ok(Self::with_first(
            client,
            calibration,
            plan,
            tokens,
            Role::Main,
        ))
    }

    /// Builds a first prompt of `tokens` tokens, or the smallest there is.
    pub(super) fn with_first(
        client: &Client,
        calibration: &Calibration,
        plan: SessionPlan,
        tokens: f64,
        role: Role,
    ) -> Self {
        let shape = (tokens.max(0.0) as u64, plan.checks);
        let correction = client.shared().corrections.lock().of(shape);
        let parts = sizing::parts(calibration, tokens + correction.unwrap_or(0.0), plan.checks)
            .unwrap_or_default();
        let recipe = Recipe {
            seed: plan.seed,
            salt: plan.salt,
            shared_prefix: plan.shared_prefix,
            facts: plan.checks,
        };
        let output = Output {
            tokens: plan.answer_tokens,
            fixed: calibration.fixed_output,
        };
        let aim = client.aim();
        let room = (parts.lines as usize + 1) * 80 + plan.checks as usize * 2048;
        let mut talk = Conversation::new(aim.dialect, &aim.model, output, room);
        talk.user(|out| recipe.first(parts, out));
        let mut prepared = Self {
            recipe,
            talk,
            shape,
            uncorrected: correction.is_none(),
            first: None,
            role,
            calibration: *calibration,
            used: None,
            expected: 0.0,
            drift: 0.0,
            plan,
        };
        prepared.first = Some(prepared.request());
        prepared
    }

    fn request(&self) -> Ask {
        Ask {
            session: self.plan.id.clone(),
            role: self.role,
            body: self.talk.body(),
            messages: self.talk.messages(),
            max_tokens: self.plan.answer_tokens,
        }
    }

    /// Sends the first turn.
    pub async fn cold(&mut self, client: &Client) -> Turn {
        let ask = self.first.take().unwrap_or_else(|| self.request());
        let answer = client.ask(ask).await;
        if let (true, Some(counted)) = (self.uncorrected, answer.attempt.input_tokens) {
            client
                .shared()
                .corrections
                .lock()
                .learn(self.shape, counted);
        }
        self.turn(client, 0, answer, None)
    }

    /// Sends the next turn; `index` counts from 1. Not to be called after a turn that failed.
    pub async fn warm(&mut self, client: &Client, index: u32) -> Turn {
        let (recipe, lines) = (self.recipe, self.question_lines());
        self.talk.user(|out| recipe.question(index, lines, out));
        let fact = recipe.asked(index);
        let answer = client.ask(self.request()).await;
        self.turn(client, index, answer, Some(fact))
    }

    /// Lines of filler beside the next question: fewer, down to none, when the turns so far came
    /// out so much longer than counted that the answer would not fit into the context any more.
    fn question_lines(&mut self) -> u64 {
        let c = self.calibration;
        let answer = f64::from(self.plan.answer_tokens);
        let used = self.used.map_or(0.0, |used| used as f64);
        let turn = c.tokens_per_question + self.drift + answer;
        let over = used + turn - self.plan.context_tokens as f64;
        let less = if over > 0.0 && c.tokens_per_line > 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "above 0, and more than there are is as good as all"
            )]
            let less = (over / c.tokens_per_line).ceil() as u64;
            less.min(QUESTION_LINES)
        } else {
            0
        };
        self.expected = c.tokens_per_question - less as f64 * c.tokens_per_line;
        QUESTION_LINES - less
    }

    /// Takes an answer into the conversation.
    fn turn(&mut self, client: &Client, index: u32, answer: Answer, fact: Option<Fact>) -> Turn {
        self.talk.assistant(&answer.text);
        let Times {
            wall_s,
            ttft_s,
            decode_s,
        } = times(&answer.attempt, client.aim().speed);
        let attempt = answer.attempt;
        if let (true, Some(used), Some(input)) = (index > 0, self.used, attempt.input_tokens) {
            let off = input as f64 - used as f64 - self.expected;
            self.drift = self.drift.max(off);
        }
        let output = attempt.output_tokens;
        self.used = attempt.input_tokens.zip(output).map(|(i, o)| i + o);
        let is_whole = attempt.outcome == Outcome::Complete;
        let right = fact
            .as_ref()
            .filter(|_| is_whole)
            .map(|fact| fact.is_in(&answer.text) || fact.is_in(&answer.reasoning));
        Turn {
            index,
            sent_at_s: attempt.clocks.sent_s.unwrap_or(attempt.clocks.head_s),
            wall_s,
            ttft_s,
            decode_s,
            input_tokens: attempt.input_tokens,
            cached_tokens: attempt.cached_tokens,
            output_tokens: attempt.output_tokens,
            answered_model: attempt.answered_model,
            asked: fact.map(|fact| fact.key),
            right,
            outcome: attempt.outcome,
            refusal: attempt.refusal,
            error: attempt.error,
        }
    }
}

/// Tokens of the context that are not the first prompt's.
fn later_tokens(calibration: &Calibration, plan: &SessionPlan) -> f64 {
    let answer = f64::from(plan.answer_tokens);
    let turn = calibration.tokens_per_question + answer + TURN_MARGIN;
    answer + f64::from(plan.checks) * turn
}

/// The times of a request, in the server's own time.
pub(super) struct Times {
    /// To the end of an answer that came whole.
    pub(super) wall_s: Option<Seconds>,
    /// To the first token.
    pub(super) ttft_s: Option<Seconds>,
    /// From the first token to the last of an answer that came whole.
    pub(super) decode_s: Option<Seconds>,
}

pub(super) fn times(attempt: &Attempt, speed: f64) -> Times {
    let clocks = &attempt.clocks;
    let between = |from: Option<Seconds>, to: Option<Seconds>| {
        Some(Seconds((to?.0 - from?.0).max(0.0) * speed))
    };
    let is_whole = attempt.outcome == Outcome::Complete;
    let end = is_whole.then_some(clocks.end_s);
    // Of a burst, and of tokens that nobody counted, there is no speed.
    let unknown = [Oddity::AnswerBurst, Oddity::UsageLeavesTokensOut];
    let has_speed = !attempt.oddities.iter().any(|odd| unknown.contains(odd));
    Times {
        wall_s: between(clocks.sent_s, end),
        ttft_s: between(clocks.sent_s, clocks.first_token_s),
        decode_s: between(clocks.first_token_s, clocks.last_token_s)
            .filter(|_| is_whole && has_speed),
    }
}
