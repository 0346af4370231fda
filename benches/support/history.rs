//! A repository of a size that a fixture never has.

use std::path::Path;

/// `mib` commits that each rewrite one of `files` files with a new incompressible MiB: `mib` MiB
/// of objects, of which `files` MiB (at most `mib`) are checked out.
pub fn history(path: &Path, mib: usize, files: usize) {
    let repo = git2::Repository::init(path).unwrap();
    repo.config()
        .unwrap()
        .set_i32("core.looseCompression", 0)
        .unwrap();
    let repo = git2::Repository::open(repo.path()).unwrap();
    let who = git2::Signature::new("b", "b@example.org", &git2::Time::new(0, 0)).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut tree = None;
    let mut parent: Option<git2::Oid> = None;
    for n in 0..mib {
        let mut bytes = Vec::with_capacity(1 << 20);
        while bytes.len() < 1 << 20 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        let old: Option<git2::Tree> = tree.map(|id| repo.find_tree(id).unwrap());
        let mut builder = repo.treebuilder(old.as_ref()).unwrap();
        builder
            .insert(
                format!("file_{}", n % files),
                repo.blob(&bytes).unwrap(),
                0o100_644,
            )
            .unwrap();
        let id = builder.write().unwrap();
        let parent_commit = parent.map(|id| repo.find_commit(id).unwrap());
        let parents: Vec<_> = parent_commit.iter().collect();
        let new = repo.find_tree(id).unwrap();
        parent = Some(
            repo.commit(Some("HEAD"), &who, &who, "x", &new, &parents)
                .unwrap(),
        );
        tree = Some(id);
    }
}
