//! Steps as shell commands, for agents that offer no better tool and for the last try.
//!
//! Only POSIX tools are used. Commands that change files say at their end whether they did, in
//! words of ours, since not every agent passes the exit status on.

use crate::Step;

/// What a changing command prints when it worked.
pub fn confirmation(step: &Step) -> Option<String> {
    match step {
        Step::Edit { path, .. } => Some(format!("edited {path}")),
        Step::Write { path, .. } => Some(format!("wrote {path}")),
        _ => None,
    }
}

/// The command line of a step, to be run in the workspace; `None` for what is no command.
pub fn command(step: &Step) -> Option<String> {
    Some(match step {
        Step::Run { command, .. } => command.clone(),
        Step::Read { path, .. } => read(path),
        Step::Search { pattern, path, .. } => format!(
            "grep -rnIE --exclude-dir=.git --exclude-dir=target -e {} {}",
            quote(pattern),
            quote(path.as_deref().unwrap_or("."))
        ),
        Step::Edit { path, old, new, .. } => {
            // The whole file is one awk record, so that the texts may span lines and hold any
            // character. Written back through the old file, so that its mode stays.
            let program = "BEGIN { RS = \"\\001\"; ORS = \"\" } { i = index($0, ENVIRON[\"OLD\"]); if (!i) exit 3; \
                           print substr($0, 1, i - 1) ENVIRON[\"NEW\"] substr($0, i + length(ENVIRON[\"OLD\"])) }";
            let (path, done) = (quote(path), quote(&format!("edited {path}")));
            let failed = quote("error: the text to replace was not found");
            format!(
                "t=$(mktemp) && OLD={} NEW={} awk {} {path} > \"$t\" && cat \"$t\" > {path} && rm -f \"$t\" \
                 && echo {done} || echo {failed}",
                quote(old),
                quote(new),
                quote(program)
            )
        }
        Step::Write { path, content, .. } => {
            let folder = path
                .rsplit_once('/')
                .map(|(folder, _)| format!("mkdir -p {} && ", quote(folder)));
            format!(
                "{}printf '%s' {} > {} && echo {}",
                folder.unwrap_or_default(),
                quote(content),
                quote(path),
                quote(&format!("wrote {path}"))
            )
        }
        Step::Say { .. } => return None,
    })
}

/// The command that shows a file.
pub fn read(path: &str) -> String {
    format!("cat {}", quote(path))
}

fn quote(text: &str) -> String {
    shell_words::quote(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(folder: &std::path::Path, step: &Step) -> String {
        let command = command(step).unwrap();
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn an_edit_through_the_shell_changes_exactly_the_text_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("it's a.txt");
        std::fs::write(&file, "one\n  'two' \\n $HOME \"x\"\nthree\n").unwrap();
        let step = Step::Edit {
            say: None,
            path: "it's a.txt".into(),
            old: "'two' \\n $HOME \"x\"\nth".into(),
            new: "zwei & \\1 `id`\n\nTH".into(),
        };
        assert!(run(folder.path(), &step).contains(&confirmation(&step).unwrap()));
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "one\n  zwei & \\1 `id`\n\nTHree\n"
        );
        let again = run(folder.path(), &step);
        assert!(
            !again.contains("edited") && again.contains("not found"),
            "{again}"
        );
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "one\n  zwei & \\1 `id`\n\nTHree\n"
        );
    }

    #[test]
    fn a_write_through_the_shell_makes_folders_and_keeps_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let content = "%s \\ 'q' \"d\"\n\nend";
        let step = Step::Write {
            say: None,
            path: "a/b/c.txt".into(),
            content: content.into(),
        };
        assert!(run(folder.path(), &step).contains("wrote a/b/c.txt"));
        assert_eq!(
            std::fs::read_to_string(folder.path().join("a/b/c.txt")).unwrap(),
            content
        );
    }

    #[test]
    fn a_search_through_the_shell_finds_files_and_lines() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "x\nfn main() {}\n").unwrap();
        let step = Step::Search {
            say: None,
            pattern: "fn (main|other)".into(),
            path: None,
        };
        assert_eq!(run(folder.path(), &step), "./a.txt:2:fn main() {}\n");
    }
}
