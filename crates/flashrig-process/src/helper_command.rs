//! The command line that starts a helper, with bubblewrap around it or without.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::sandbox::{HIDDEN, Sandbox, base_flags};
use super::shim;
use super::spec::Spec;

/// The command that starts the helper for `spec`: program and arguments.
pub(super) fn helper_command(spec: &Spec) -> (PathBuf, Vec<OsString>) {
    match &spec.sandbox {
        Sandbox::ProcessGroup => (spec.shim.clone(), vec![shim::SUBCOMMAND.into()]),
        Sandbox::Bubblewrap { bwrap } => {
            let mut args = base_flags();
            args.extend(binds(spec));
            args.extend([
                "--".into(),
                spec.shim.clone().into(),
                shim::SUBCOMMAND.into(),
            ]);
            (bwrap.clone(), args)
        }
    }
}

/// Shallow paths first, so that a deeper bind is not covered by the one around it; read-only ones
/// before writable ones, so that what may be written stays so.
fn binds(spec: &Spec) -> Vec<OsString> {
    let by_depth = |path: &PathBuf| path.components().count();
    let mut seen: Vec<PathBuf> = spec.visible.clone();
    seen.push(spec.dir.clone());
    seen.push(spec.shim.clone());
    seen.extend(homes(&spec.program));
    seen.retain(|path| is_hidden(path) && !spec.writable.iter().any(|w| path.starts_with(w)));
    seen.sort_by_key(by_depth);
    seen.dedup();
    let mut writable = spec.writable.clone();
    writable.sort_by_key(by_depth);
    writable.dedup();

    let mut args = Vec::new();
    let mut bind =
        |flag: &str, path: &Path| args.extend([OsString::from(flag), path.into(), path.into()]);
    for path in &seen {
        bind("--ro-bind-try", path);
    }
    for path in &writable {
        bind("--bind", path);
    }
    args
}

/// The folders that a program lives in: where its name is, and where the name leads. A program
/// that lies in the hidden folder itself is taken alone, or nothing would be hidden.
fn homes(program: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().ok();
    [Some(program.to_path_buf()), real]
        .into_iter()
        .flatten()
        .map(|file| match file.parent() {
            Some(folder) if folder != OsStr::new(HIDDEN) => folder.to_path_buf(),
            _ => file,
        })
        .collect()
}

fn is_hidden(path: &Path) -> bool {
    path.starts_with(HIDDEN) && path != Path::new(HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        let bwrap = Sandbox::Bubblewrap {
            bwrap: "/usr/bin/bwrap".into(),
        };
        Spec::new(
            "test",
            "/tmp/agents/bin/agent",
            "/tmp/run/work",
            bwrap,
            "/opt/flashrig",
        )
    }

    fn bound(spec: &Spec) -> Vec<String> {
        let args: Vec<String> = binds(spec)
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        args.chunks(3)
            .map(|c| format!("{} {}", c[0], c[1]))
            .collect()
    }

    #[test]
    fn only_what_lies_below_tmp_is_brought_back() {
        let mut spec = spec();
        spec.visible = vec!["/usr/lib".into(), "/tmp/toolchain".into(), "/tmp".into()];
        assert_eq!(
            bound(&spec),
            [
                "--ro-bind-try /tmp/toolchain",
                "--ro-bind-try /tmp/run/work",
                "--ro-bind-try /tmp/agents/bin"
            ]
        );
    }

    #[test]
    fn a_visible_path_never_makes_part_of_a_writable_folder_read_only() {
        let mut spec = spec();
        spec.writable = vec!["/tmp/run/work".into()];
        spec.visible = vec!["/tmp/run/work/target/debug".into()];
        spec.program = "/tmp/run/work/target/debug/tool".into();
        assert_eq!(bound(&spec), ["--bind /tmp/run/work"]);
    }

    #[test]
    fn a_writable_folder_inside_a_visible_one_stays_writable() {
        let mut spec = spec();
        spec.visible = vec!["/tmp/run".into()];
        spec.writable = vec!["/tmp/run/work".into()];
        let binds = bound(&spec);
        assert_eq!(
            binds.last().map(String::as_str),
            Some("--bind /tmp/run/work")
        );
        assert!(binds.contains(&"--ro-bind-try /tmp/run".to_owned()));
    }

    #[test]
    fn a_program_in_tmp_itself_does_not_uncover_all_of_tmp() {
        let mut spec = spec();
        spec.program = "/tmp/agent.sh".into();
        assert!(bound(&spec).contains(&"--ro-bind-try /tmp/agent.sh".to_owned()));
        assert!(!bound(&spec).contains(&"--ro-bind-try /tmp".to_owned()));
    }
}
