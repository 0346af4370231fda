//! How a session ended, and why it does not count as done.

use flashrig_clock::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckDetail, ServerLoss, Stall};
use crate::{Exit, OddAnswers, Outcome, RefusalKind, Status};

/// How a session ended and what is known of the cause: `detail` of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum SessionDetail {
    /// The agent finished and exited with 0.
    Completed,
    /// The agent finished, and exited with another code.
    CompletedWithCode {
        /// The code.
        exit_code: i32,
    },
    /// The agent reported its result, did not exit, and was ended.
    CompletedNoExit,
    /// The agent reached its own limit of turns.
    TurnLimit,
    /// The run was stopped.
    Interrupted,
    /// Processes of the session could not be ended.
    ProcessesLeft {
        /// Their command lines.
        commands: Vec<String>,
    },
    /// The agent's program did not start.
    NotStarted {
        /// What the system said.
        error: String,
    },
    /// flashrig itself failed.
    RigFailed {
        /// What went wrong.
        error: String,
    },
    /// flashrig could not verify the work.
    VerificationFailed {
        /// What went wrong.
        error: String,
    },
    /// The server was lost while the session ran.
    ServerLost {
        /// How.
        loss: ServerLoss,
    },
    /// The server stopped generating.
    ServerStalled {
        /// What is known of it.
        stall: Stall,
    },
    /// The session's time limit ran out.
    TimeLimit {
        /// The limit.
        limit_s: Seconds,
        /// What its last request was at.
        cause: Option<RequestTrouble>,
    },
    /// No main request came in time.
    NoRequestInTime {
        /// The limit.
        limit_s: Seconds,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// Nothing happened for too long while no request was open.
    Idle {
        /// The limit.
        limit_s: Seconds,
        /// Requests so far.
        requests: u64,
        /// What its last request came to.
        cause: Option<RequestTrouble>,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// The agent ended without a main request that reached the server.
    NoRequest {
        /// How its process ended.
        exit: Exit,
        /// What its last request came to.
        cause: Option<RequestTrouble>,
        /// The last error that its transcript reports.
        agent_error: Option<String>,
        /// The context length that the agent was given, in tokens.
        context_tokens: Option<u64>,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// The agent's last request failed, and it made no other.
    RequestLost {
        /// The request.
        cause: RequestTrouble,
    },
    /// The agent reported an error of its own.
    AgentError {
        /// Its words.
        error: String,
    },
    /// A signal that flashrig did not send ended the agent.
    AgentSignalled {
        /// The signal's number.
        signal: i32,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// The agent ended without reporting a result.
    NoResult {
        /// How its process ended.
        exit: Exit,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// The agent exited with an error code.
    AgentExited {
        /// The code.
        exit_code: i32,
        /// The end of the agent's standard error.
        stderr: Option<String>,
    },
    /// The repository that the task was taken from was changed while the session ran.
    Escaped {
        /// The repository's folder.
        repository: String,
        /// What changed.
        changes: Vec<String>,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// What a request came to that was not answered whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum RequestTrouble {
    /// It was refused or failed, or its answer broke off.
    RequestFailed {
        /// Its number in the session.
        request: u32,
        /// How it ended.
        outcome: Outcome,
        /// HTTP status; `null` when none came.
        status: Option<u16>,
        /// Why it was refused, when that is known.
        refusal: Option<RefusalKind>,
        /// The server's words.
        message: Option<String>,
        /// The field of the request that the server names.
        field: Option<String>,
        /// Whether flashrig's gateway refused the prompt as longer than `--max-prompt`.
        long_prompt: bool,
    },
    /// flashrig's own gate held it to the end.
    HeldByGate {
        /// Its number in the session.
        request: u32,
        /// For how long.
        held_s: Seconds,
    },
    /// Its answer was still coming.
    StillAnswered {
        /// Its number in the session.
        request: u32,
    },
    /// It was cut off while the server was silent.
    CutOff {
        /// Its number in the session.
        request: u32,
        /// Whether a token had come before.
        had_token: bool,
        /// How long the server had been silent.
        silent_s: Seconds,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

/// Why a session does not count as done: `failures` of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", tag = "code", rename_all = "snake_case")]
#[schemars(transform = super::text_in_schema)]
pub enum SessionFailure {
    /// The agent did not come to its own end.
    NotCompleted {
        /// How the session ended.
        status: Status,
        /// What is known of the cause.
        detail: SessionDetail,
    },
    /// The patch is empty, and the server's answers contradict themselves, which may be why.
    AnswersContradict {
        /// How, and how many.
        odd: Vec<OddAnswers>,
    },
    /// The patch is empty, and a check did not pass.
    NothingChanged,
    /// Files that the task protects were changed.
    ProtectedTouched {
        /// Their paths.
        paths: Vec<String>,
    },
    /// A check did not pass.
    CheckFailed {
        /// Its name.
        check: String,
        /// How it ended.
        detail: CheckDetail,
    },
    /// Patch and checks were not looked at.
    NotVerified,
    /// The patch changes more files than the task allows.
    TooManyFiles {
        /// Changed files.
        files: u64,
        /// The limit.
        limit: u64,
    },
    /// The patch changes more lines than the task allows.
    TooManyLines {
        /// Inserted and deleted lines.
        lines: u64,
        /// The limit.
        limit: u64,
    },
    /// Requests were refused or answered with an error.
    RequestsRefused {
        /// How many.
        requests: u64,
    },
    /// flashrig's gateway refused prompts longer than `--max-prompt`.
    PromptsTooLong {
        /// How many.
        prompts: u64,
    },
    /// Answers broke off.
    AnswersBrokeOff {
        /// How many.
        answers: u64,
    },
    /// A sentence of another version of flashrig.
    Other {
        /// The sentence.
        #[serde(skip_serializing)]
        text: String,
    },
}

impl SessionFailure {
    /// Whether it is the server's: a request refused, failed or broken off.
    pub fn is_of_the_server(&self) -> bool {
        matches!(
            self,
            Self::RequestsRefused { .. } | Self::AnswersBrokeOff { .. }
        )
    }
}

super::fact!(SessionDetail, RequestTrouble, SessionFailure);
