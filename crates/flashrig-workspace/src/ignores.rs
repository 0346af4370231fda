//! The base's ignore rules.
//!
//! They come from the base tree and from nowhere else: an agent that rewrites `.gitignore` must
//! not be able to hide a file from its patch, and an operator's own excludes must not either.

use git2::{Repository, Tree};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::paths;

/// The rules that hold at one place of the tree: those of its folder and of all above.
#[derive(Default)]
pub(super) struct Ignores {
    /// Length of the folder's path, and its rules; outermost first.
    stack: Vec<(usize, Gitignore)>,
}

impl Ignores {
    /// Enters a folder of the base. Returns whether [`Ignores::leave`] is due.
    pub(super) fn enter(&mut self, repo: &Repository, folder: &[u8], tree: &Tree<'_>) -> bool {
        let Some(rules) = tree
            .get_name(".gitignore")
            .and_then(|entry| repo.find_blob(entry.id()).ok())
        else {
            return false;
        };
        let mut builder = GitignoreBuilder::new("");
        for line in String::from_utf8_lossy(rules.content()).lines() {
            // Git passes over a malformed line, and so does this.
            let _ = builder.add_line(None, line);
        }
        let Ok(rules) = builder.build() else {
            return false;
        };
        self.stack.push((folder.len(), rules));
        true
    }

    /// Leaves the folder entered last.
    pub(super) fn leave(&mut self) {
        self.stack.pop();
    }

    /// Whether an untracked path is ignored. The caller does not descend into ignored folders, so
    /// parents need no second look.
    pub(super) fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        for (folder, rules) in self.stack.iter().rev() {
            let below = if *folder == 0 {
                path
            } else {
                &path[folder + 1..]
            };
            let verdict = rules.matched(paths::as_path(below), is_folder);
            if !verdict.is_none() {
                return verdict.is_ignore();
            }
        }
        false
    }
}
