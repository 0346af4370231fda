//! The command line as a record keeps it.
//!
//! Secrets are masked with `***`, by these rules:
//! - in `--agent-command`, the value of an option, variable or header whose name has `key`,
//!   `token`, `secret`, `password`, `credential` or `authorization` in it: `--api-key X`,
//!   `--api-key=X`, `API_KEY=X`, `Authorization: Bearer X`. Placeholders such as `{token}` stay;
//! - the value of a `--key…` option of flashrig's own that cannot be the name of a variable;
//! - the value of `--basic-env`, and what follows `=` in that of `--header-env`, unless it can be the
//!   name of a variable;
//! - the user name and password in an address, which are left out;
//! - the server's key and whatever else opens its door, wherever it is; each byte becomes an asterisk.

use flashrig_http::{Upstream, without_user_info};

/// Parts of names whose values are secrets.
const SECRET: [&str; 6] = [
    "key",
    "token",
    "secret",
    "password",
    "credential",
    "authorization",
];
const MASK: &str = "***";

/// The command line of this process. What is not UTF-8 is replaced, secrets are masked.
pub fn command_line(server: Option<&Upstream>) -> Vec<String> {
    let typed = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let redactor = server.map(Upstream::redactor).cloned().unwrap_or_default();
    let covered = |arg: String| redactor.text(without_user_info(&arg)).into_owned();
    masked(typed).into_iter().map(covered).collect()
}

/// Arguments of flashrig's own, as a record keeps them.
pub fn masked_arguments(args: &[String]) -> Vec<String> {
    masked(args.iter().cloned())
}

/// Whether stored arguments lack secrets, so that nothing can be started with them.
pub fn lack_secrets(args: &[String]) -> bool {
    args.iter().any(|arg| arg.contains(MASK))
}

fn masked(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut option: Option<String> = None;
    typed
        .map(|arg| {
            if let Some(name) = option.take() {
                return masked_value(&name, &arg);
            }
            match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    format!("{name}={}", masked_value(name, value))
                }
                _ => {
                    option = arg.starts_with("--").then(|| arg.clone());
                    arg
                }
            }
        })
        .collect()
}

/// The value of an option of flashrig's own.
fn masked_value(option: &str, value: &str) -> String {
    let is_variable = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if option == "--agent-command" {
        return masked_command(value);
    }
    let names_variable = option.starts_with("--key") || option == "--basic-env";
    if names_variable && !value.chars().all(is_variable) {
        return MASK.to_owned();
    }
    if option == "--header-env" {
        return match value.split_once('=') {
            Some((_, variable)) if variable.chars().all(is_variable) => value.to_owned(),
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        };
    }
    value.to_owned()
}

/// A command line in one argument; to the letter, where nothing in it is a secret.
fn masked_command(command: &str) -> String {
    let Ok(words) = shell_words::split(command) else {
        return MASK.to_owned();
    };
    let mut next_is_secret = false;
    let kept: Vec<String> = words
        .iter()
        .map(|word| {
            let follows_name = std::mem::take(&mut next_is_secret);
            if follows_name && !word.starts_with('-') {
                return masked_word(word);
            }
            for separator in ['=', ':'] {
                if let Some((name, value)) = word.split_once(separator)
                    && names_a_secret(name)
                {
                    return format!("{name}{separator}{}", masked_word(value));
                }
            }
            next_is_secret = word.starts_with('-') && names_a_secret(word);
            word.clone()
        })
        .collect();
    if kept == words {
        command.to_owned()
    } else {
        shell_words::join(kept)
    }
}

fn masked_word(word: &str) -> String {
    let is_placeholder = word.starts_with('{') && word.ends_with('}');
    if is_placeholder { word } else { MASK }.to_owned()
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    // Not a name but a sentence, a script or an address.
    !name.contains([' ', '/']) && SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(args: &[&str]) -> Vec<String> {
        masked(args.iter().map(ToString::to_string))
    }

    #[test]
    fn secrets_in_an_agents_command_line_are_masked_and_the_rest_stays() {
        for (typed, expected) in [
            (
                "my-agent --api-key sk-1 --model m",
                "my-agent --api-key '***' --model m",
            ),
            ("my-agent --token=sk-1 go", "my-agent '--token=***' go"),
            ("env API_KEY=sk-1 my-agent", "env 'API_KEY=***' my-agent"),
            (
                "curl -H 'Authorization: Bearer sk-1'",
                "curl -H 'Authorization:***'",
            ),
            (
                "my-agent --password 'a b' -q",
                "my-agent --password '***' -q",
            ),
            ("my-agent --key \"unfinished", "***"),
        ] {
            assert_eq!(kept(&["--agent-command", typed])[1], expected);
            let one = format!("--agent-command={typed}");
            assert_eq!(kept(&[&one])[0], format!("--agent-command={expected}"));
        }
    }

    #[test]
    fn a_command_that_a_record_keeps_masked_is_known_to_lack_its_secrets() {
        let typed = ["pair", "--agent-command", "my-agent --api-key sk-1"].map(str::to_owned);
        let kept = masked_arguments(&typed);
        assert!(!kept.concat().contains("sk-1"), "{kept:?}");
        assert!(lack_secrets(&kept));
        assert!(!lack_secrets(&typed[..2]));
    }

    #[test]
    fn what_is_no_secret_stays_to_the_letter() {
        for typed in [
            "my-agent  --token {token} --url {base_url}",
            "python3 'my agent.py' --key --verbose",
            "sh -c 'echo key: value'",
            "my-agent --max-turns=3",
        ] {
            assert_eq!(kept(&["--agent-command", typed])[1], typed);
        }
    }

    #[test]
    fn a_key_typed_in_the_place_of_a_variables_name_is_masked() {
        assert_eq!(kept(&["--key-env", "sk-1-2"]), ["--key-env", "***"]);
        assert_eq!(kept(&["--key-env=sk-1-2"]), ["--key-env=***"]);
        assert_eq!(kept(&["--key-env", "MY_KEY"]), ["--key-env", "MY_KEY"]);
        assert_eq!(kept(&["--model", "sk-1-2"]), ["--model", "sk-1-2"]);
        assert_eq!(kept(&["--basic-env", "a:b"]), ["--basic-env", "***"]);
        for (typed, shown) in [("X=VAR_1", "X=VAR_1"), ("X=s3-x", "X=***"), ("s3-x", "***")] {
            assert_eq!(kept(&["--header-env", typed]), ["--header-env", shown]);
        }
    }
}
