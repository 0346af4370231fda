//! Copying a folder so that git cannot tell the copy from the original: modes, times and links
//! are kept. Blocks are shared where the file system can.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use anyhow::Context as _;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flashrig_record::CopyMethod;

/// How a copy was made, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyReport {
    /// The best kind of sharing that the file system allowed.
    pub method: CopyMethod,
    /// Files and links in the copy.
    pub files: u64,
    /// Bytes that were really copied.
    pub copied_bytes: u64,
    /// Bytes that original and copy share on disk.
    pub shared_bytes: u64,
}

/// Which files may become hard links when blocks cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linking {
    /// Git's object files: git replaces them but never writes into them.
    GitObjects,
    /// All files.
    Everything,
    /// None: the copy must survive a writer that keeps to no rule.
    Nothing,
}

/// Enough files that a second thread pays for itself.
const PARALLEL_FROM_FILES: usize = 256;

struct Job {
    from: PathBuf,
    to: PathBuf,
    meta: Metadata,
    may_link: bool,
}

struct Copier {
    reflinks: AtomicBool,
    links: AtomicBool,
    reflinked: AtomicBool,
    linked: AtomicBool,
    copied_bytes: AtomicU64,
    shared_bytes: AtomicU64,
}

/// Copies the folder `from` into the existing folder `to`. Files that `leave_out`
/// names are not copied, nor are sockets and pipes, which only a living process could serve.
pub(super) fn folder(
    from: &Path,
    to: &Path,
    linking: Linking,
    leave_out: &dyn Fn(&Path) -> bool,
) -> anyhow::Result<CopyReport> {
    let mut jobs = Vec::new();
    let in_objects = from.file_name().is_some_and(|name| name == "objects");
    collect(from, to, linking, in_objects, leave_out, &mut jobs)?;
    let copier = Copier {
        reflinks: AtomicBool::new(true),
        links: AtomicBool::new(true),
        reflinked: AtomicBool::new(false),
        linked: AtomicBool::new(false),
        copied_bytes: AtomicU64::new(0),
        shared_bytes: AtomicU64::new(0),
    };
    copier.all(&jobs)?;
    Ok(CopyReport {
        method: if copier.reflinked.into_inner() {
            CopyMethod::Reflink
        } else if copier.linked.into_inner() {
            CopyMethod::HardLinkedObjects
        } else {
            CopyMethod::Copied
        },
        files: jobs.len() as u64,
        copied_bytes: copier.copied_bytes.into_inner(),
        shared_bytes: copier.shared_bytes.into_inner(),
    })
}

fn collect(
    from: &Path,
    to: &Path,
    linking: Linking,
    in_objects: bool,
    leave_out: &dyn Fn(&Path) -> bool,
    jobs: &mut Vec<Job>,
) -> anyhow::Result<()> {
    let context = || format!("cannot read folder {}", from.display());
    for entry in fs::read_dir(from).with_context(context)? {
        let entry = entry.with_context(context)?;
        let from = entry.path();
        let to = to.join(entry.file_name());
        let meta = entry
            .metadata()
            .with_context(|| format!("cannot read {}", from.display()))?;
        let kind = meta.file_type();
        if leave_out(&from) || kind.is_socket() || kind.is_fifo() {
            continue;
        }
        if kind.is_dir() {
            let in_objects = in_objects || from.ends_with(".git/objects");
            fs::create_dir(&to).with_context(|| format!("cannot make folder {}", to.display()))?;
            collect(&from, &to, linking, in_objects, leave_out, jobs)?;
            fs::set_permissions(&to, meta.permissions())
                .with_context(|| format!("cannot set the mode of {}", to.display()))?;
        } else {
            let may_link = kind.is_file()
                && match linking {
                    Linking::Everything => true,
                    Linking::GitObjects => in_objects,
                    Linking::Nothing => false,
                };
            jobs.push(Job {
                from,
                to,
                meta,
                may_link,
            });
        }
    }
    Ok(())
}

impl Copier {
    fn all(&self, jobs: &[Job]) -> anyhow::Result<()> {
        let threads = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(4);
        if jobs.len() < PARALLEL_FROM_FILES || threads == 1 {
            return jobs.iter().try_for_each(|job| self.one(job));
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                            self.one(job)?;
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            workers
                .into_iter()
                .try_for_each(|worker| match worker.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
        })
    }

    fn one(&self, job: &Job) -> anyhow::Result<()> {
        self.place(job)
            .with_context(|| format!("cannot copy {} to {}", job.from.display(), job.to.display()))
    }

    fn place(&self, job: &Job) -> io::Result<()> {
        let Job {
            from,
            to,
            meta,
            may_link,
        } = job;
        if meta.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
            return keep_times(to, meta);
        }
        // What fails for one file fails for all: it is a property of the file system.
        if self.reflinks.load(Ordering::Relaxed) {
            if reflink_copy::reflink(from, to).is_ok() {
                self.reflinked.store(true, Ordering::Relaxed);
                self.shared_bytes.fetch_add(meta.len(), Ordering::Relaxed);
                fs::set_permissions(to, fs::Permissions::from_mode(meta.mode() & 0o7777))?;
                return keep_times(to, meta);
            }
            self.reflinks.store(false, Ordering::Relaxed);
        }
        if *may_link && self.links.load(Ordering::Relaxed) {
            if fs::hard_link(from, to).is_ok() {
                self.linked.store(true, Ordering::Relaxed);
                self.shared_bytes.fetch_add(meta.len(), Ordering::Relaxed);
                return Ok(());
            }
            self.links.store(false, Ordering::Relaxed);
        }
        let bytes = fs::copy(from, to)?;
        self.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        keep_times(to, meta)
    }
}

/// Git's index decides by a file's time whether it may have changed.
fn keep_times(to: &Path, meta: &Metadata) -> io::Result<()> {
    utimensat(
        AT_FDCWD,
        to,
        &TimeSpec::new(meta.atime(), meta.atime_nsec()),
        &TimeSpec::new(meta.mtime(), meta.mtime_nsec()),
        UtimensatFlags::NoFollowSymlink,
    )
    .map_err(io::Error::from)
}
