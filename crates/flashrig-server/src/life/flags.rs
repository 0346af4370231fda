//! The flags of a command line held against those that the program itself lists, before anything
//! is started: builds differ, and one that starts and ignores a flag measures something else.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use regex::Regex;

use super::launch::Launch;
use super::launch_error::LaunchError;
use super::version::program_version;
use crate::profiles::Target;
use flashrig_config::nearest;
use flashrig_process::{ShortCommand, run_short};

/// Python programs import for many seconds before they list anything.
const LIMIT: Duration = Duration::from_secs(60);
/// A text of this length may have been cut.
const LONGEST: usize = 1 << 20;

/// What became of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagCheck {
    /// The program lists every flag.
    AllKnown,
    /// Nothing could be held against anything.
    NotChecked {
        /// Why.
        because: String,
    },
}

/// Flags that cannot be checked, or do not exist.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// It cannot be started here at all.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The program does not list a flag.
    #[error(
        "server {profile}: unknown flag {flag:?}; {program} ({version}) lists the flags that it knows \
         with `{help}`{hint}"
    )]
    Unknown {
        /// Profile.
        profile: String,
        /// Program.
        program: String,
        /// Its version.
        version: String,
        /// The flag.
        flag: String,
        /// The nearest one, as a question.
        hint: String,
        /// The command that lists them.
        help: String,
    },
}

/// Holds the flags of the server that would be started against what its program lists. A server
/// that is not started by flashrig has none.
///
/// # Errors
/// A flag that the program does not list, by name; or it cannot be started here at all.
pub async fn check_flags(target: &Target) -> Result<FlagCheck, FlagError> {
    match target {
        Target::Managed { recipe, places, .. } => {
            check(&Launch::new((**recipe).clone(), (**places).clone())?).await
        }
        Target::Simulated { .. } | Target::Attached { .. } => Ok(FlagCheck::NotChecked {
            because: "flashrig does not start it as a program".to_owned(),
        }),
    }
}

/// The same for one that is about to be started.
pub(crate) async fn check(launch: &Launch) -> Result<FlagCheck, FlagError> {
    let args = match &launch.recipe.help {
        Some(args) if args.is_empty() => {
            return Ok(not_checked("its profile says so (start.help is empty)"));
        }
        Some(args) => args.clone(),
        None => [launch.subcommands(), vec!["--help".to_owned()]].concat(),
    };
    let command = shell_words::join(
        std::iter::once(launch.program.display().to_string()).chain(args.iter().cloned()),
    );
    let text = match listed(launch, args).await {
        Ok(text) => text,
        Err(message) => return Ok(not_checked(&message)),
    };
    let known = flags(&text);
    if known.is_empty() {
        return Ok(not_checked(&format!("`{command}` lists no flags")));
    }
    for flag in used(&launch.args(1)) {
        if known.contains(flag) {
            continue;
        }
        if text.len() >= LONGEST {
            return Ok(not_checked(&format!("`{command}` says more than is read")));
        }
        let hint = nearest(flag, known.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let version = program_version(launch).await;
        return Err(FlagError::Unknown {
            profile: launch.recipe.profile.clone(),
            program: launch.program.display().to_string(),
            version: version.unwrap_or_else(|| "version unknown".to_owned()),
            flag: flag.to_owned(),
            hint,
            help: command,
        });
    }
    Ok(FlagCheck::AllKnown)
}

fn not_checked(because: &str) -> FlagCheck {
    FlagCheck::NotChecked {
        because: because.to_owned(),
    }
}

/// What the program says of its flags; asked once for all command lines of a sweep.
async fn listed(launch: &Launch, args: Vec<String>) -> Result<String, String> {
    type Known = HashMap<(PathBuf, Vec<String>), String>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock();
    let key = (launch.program.clone(), args);
    if let Some(text) = known().get(&key) {
        return Ok(text.clone());
    }
    let command = ShortCommand {
        program: launch.program.clone(),
        args: key.1.iter().map(OsString::from).collect(),
        env: launch.env(0),
    };
    // Some programs list their flags and exit with an error.
    let output = run_short(command, LIMIT).await.map_err(|e| e.to_string())?;
    known().insert(key, output.text.clone());
    Ok(output.text)
}

/// The flags that a text lists.
fn flags(text: &str) -> BTreeSet<String> {
    static FLAG: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?:^|[\s,|/(\[<'"`])(--?[A-Za-z][A-Za-z0-9_-]*)"#).ok());
    let Some(pattern) = &*FLAG else {
        return BTreeSet::new();
    };
    let text = plain(text);
    let mut flags = BTreeSet::new();
    for line in text.lines() {
        let mut from = 0;
        // The sign between two flags belongs to both.
        while let Some(found) = pattern.captures_at(line, from).and_then(|c| c.get(1)) {
            flags.insert(found.as_str().to_owned());
            from = found.end();
        }
    }
    flags
}

/// Terminal styles of a help text (colours) are no part of its words.
fn plain(text: &str) -> String {
    console::strip_ansi_codes(text).into_owned()
}

/// The flags of a command line.
fn used(args: &[String]) -> impl Iterator<Item = &str> {
    args.iter()
        .take_while(|arg| *arg != "--")
        .map(|arg| arg.split('=').next().unwrap_or_default())
        .filter(|arg| {
            let name = arg.trim_start_matches('-');
            // A negative number is a value.
            arg.starts_with('-') && name.starts_with(|c: char| c.is_ascii_alphabetic())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_as_the_usual_parsers_list_them() {
        let text = "usage: x [-h] [--host HOST] [--a-b {x,y}]\n\
                    -t,    --threads N   number of threads (like --cpu)\n\
                    -np,   --parallel N\n\
                    \x1b[1m--color\x1b[0m=<when>\n      --no-mmap|--mmap\n 3-4 well-known a--b\n";
        let found: Vec<String> = flags(text).into_iter().collect();
        assert_eq!(
            found,
            [
                "--a-b",
                "--color",
                "--cpu",
                "--host",
                "--mmap",
                "--no-mmap",
                "--parallel",
                "--threads",
                "-h",
                "-np",
                "-t"
            ]
        );
    }

    #[test]
    fn values_are_no_flags() {
        let args = ["serve", "--x=1", "-5", "-t", "--", "--y"].map(str::to_owned);
        assert_eq!(used(&args).collect::<Vec<_>>(), ["--x", "-t"]);
    }
}
