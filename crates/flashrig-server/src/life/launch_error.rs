//! Why a server cannot be started on this machine, and what to do.

/// Why a server cannot be started here.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such program.
    #[error("server {profile}: the program {program:?} is not there; {next}")]
    NoProgram {
        /// Profile.
        profile: String,
        /// Program.
        program: String,
        /// What to do.
        next: String,
    },
    /// No such file.
    #[error(
        "server {profile}: {path} is not there, which the variable {variable} names; give another \
         with --set {variable}=PATH"
    )]
    NoFile {
        /// Profile.
        profile: String,
        /// Variable.
        variable: String,
        /// The file.
        path: String,
    },
    /// `{installed}` of what is not installed.
    #[error("server {profile}: {what} needs {{installed}}, and {install} is not installed; {next}")]
    NotInstalled {
        /// Profile.
        profile: String,
        /// The field or variable.
        what: String,
        /// What is to be installed.
        install: String,
        /// What to do.
        next: String,
    },
    /// A variable that needs a value has none.
    #[error(
        "server {profile}: {field} needs a value of the variable {variable}; give it with --set \
         {variable}=VALUE"
    )]
    NoValue {
        /// Profile.
        profile: String,
        /// The field.
        field: &'static str,
        /// Variable.
        variable: String,
    },
    /// A variable of the operator's environment is not set.
    #[error(
        "server {profile}: the environment variable {variable}, which start.env names, is not set"
    )]
    NoEnvironment {
        /// Profile.
        profile: String,
        /// Variable.
        variable: String,
    },
}

impl LaunchError {
    /// Whether something else has to be typed.
    pub fn is_mistyped(&self) -> bool {
        !matches!(self, Self::NoProgram { .. } | Self::NotInstalled { .. })
    }
}
