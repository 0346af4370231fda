//! Installing a server from Python packages into flashrig's cache folder: a venv with pinned
//! versions and hashes, a small model, and a program that starts it. Built beside its place and
//! renamed, so that what was interrupted never looks whole.

mod error;
mod manifest;
mod site;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashrig_process::{Sandbox, Spec, find_program};
use manifest::{STARTER, place};

pub use error::InstallError;
pub use manifest::{Manifest, Recipe, folder, names};
pub use site::{Site, StepError, run_step};

/// 400 MB over a slow line.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// A first start of a large package from a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(120);
/// The version of the Python that runs it, when it can make venvs with pip in them.
const PYTHON: &str = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])";
/// Settings of the operator that would lead pip or Python elsewhere.
const NOT_PASSED: &[&str] = &[
    "PIP_NO_BINARY",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

/// A server that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its folder.
    pub folder: PathBuf,
    /// Its program.
    pub program: PathBuf,
    /// What the program says when asked for its version.
    pub version: String,
    /// Whether it had been there before.
    pub was_there: bool,
}

/// Who installs, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The operator's environment.
    pub operator: &'a BTreeMap<OsString, OsString>,
    /// flashrig's cache folder.
    pub cache: &'a Path,
    /// The flashrig binary, which supervises what is run.
    pub shim: &'a Path,
}

/// Installs the server unless it is there already, telling `say` what is done.
///
/// # Errors
/// See [`InstallError`].
pub async fn install(
    manifest: &Manifest,
    around: Surroundings<'_>,
    say: impl Fn(&str),
) -> Result<Installed, InstallError> {
    let work = Work {
        manifest,
        recipe: manifest.recipe()?,
        around,
        env: environment(around.operator),
        site: Site {
            folder: place(around.cache),
            name: manifest.name().to_owned(),
        },
    };
    let _lock = work.site.lock(&say).await.map_err(|e| work.cache(e))?;
    let target = manifest.folder(around.cache);
    if target.is_dir() {
        // A venv whose Python was replaced looks whole and does not start.
        match work.version(&target).await {
            Ok(version) => return Ok(work.there(target, version, true)),
            Err(error) => say(&format!("installing it anew, since {error}")),
        }
    }
    let python = work.python().await?;
    say(&format!(
        "installing {} (about {} MB on disk) …",
        work.recipe.title, work.recipe.megabytes
    ));
    let building = work.site.build_folder().map_err(|e| work.cache(e))?;
    work.build(building.path(), &python).await?;
    let version = work.version(building.path()).await?;
    let put = work.site.put(building, &target);
    put.map_err(|e| work.cache(e))?;
    Ok(work.there(target, version, false))
}

/// What the steps of one installation share.
struct Work<'a> {
    manifest: &'a Manifest,
    recipe: Recipe,
    around: Surroundings<'a>,
    env: Vec<(OsString, OsString)>,
    site: Site,
}

impl Work<'_> {
    fn name(&self) -> String {
        self.manifest.name().to_owned()
    }

    fn key(&self) -> String {
        let folder = self.manifest.folder(self.around.cache);
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn there(&self, folder: PathBuf, version: String, was_there: bool) -> Installed {
        Installed {
            program: folder.join("bin").join(&self.recipe.program),
            folder,
            version,
            was_there,
        }
    }

    fn cache(&self, source: std::io::Error) -> InstallError {
        InstallError::Cache {
            server: self.name(),
            folder: self.site.folder.clone(),
            source,
        }
    }

    /// A Python that can do it.
    async fn python(&self) -> Result<PathBuf, InstallError> {
        let path = self.around.operator.get(OsStr::new("PATH"));
        let path = path.map_or(OsStr::new(""), OsString::as_os_str);
        let needs = self.recipe.needs.get(std::env::consts::OS);
        for program in needs.into_iter().flatten() {
            if find_program(program, path).is_none() {
                return Err(InstallError::Needs {
                    server: self.name(),
                    program: program.clone(),
                });
            }
        }
        let needed = self.recipe.python.clone();
        let python = find_program("python3", path)
            .ok_or_else(|| InstallError::NoPython(self.name(), needed.clone()))?;
        let server = self.name();
        let dir = self.site.folder.clone();
        let found = match self
            .run("python3", &python, &dir, ["-I", "-c", PYTHON])
            .await
        {
            Ok(message) => message.trim().to_owned(),
            Err(InstallError::Step { error, .. }) => {
                return Err(InstallError::NoVenv {
                    server,
                    python,
                    message: error.output,
                });
            }
            Err(other) => return Err(other),
        };
        if number(&found) < number(&needed) {
            return Err(InstallError::OldPython {
                server,
                python,
                found,
                needed,
            });
        }
        Ok(python)
    }

    async fn build(&self, folder: &Path, python: &Path) -> Result<(), InstallError> {
        let fail = |e| self.cache(e);
        for (name, text) in self.manifest.files() {
            std::fs::write(folder.join(name), text).map_err(fail)?;
        }
        let venv = self
            .venv(folder, "venv", "requirements.txt", python)
            .await?;
        let tools = match self.manifest.file("tools.txt") {
            Some(_) => self.venv(folder, "tools", "tools.txt", python).await?,
            None => venv.clone(),
        };
        let make = ["-I", "make_model.py", &self.recipe.model];
        self.run("making the model", &tools, folder, make).await?;
        if !folder.join(&self.recipe.model).exists() {
            return Err(InstallError::Step {
                server: self.name(),
                step: "making the model",
                error: StepError::new("left no model", &self.recipe.model),
            });
        }
        if tools != venv {
            std::fs::remove_dir_all(folder.join("tools")).map_err(fail)?;
        }
        // Nothing is installed into it again.
        let bare = [
            "-I",
            "-m",
            "pip",
            "uninstall",
            "-q",
            "-y",
            "pip",
            "setuptools",
        ];
        self.run("removing pip", &venv, folder, bare).await?;
        let bin = folder.join("bin");
        std::fs::create_dir(&bin).map_err(fail)?;
        let starter = bin.join(&self.recipe.program);
        // The program's hash, which records keep, is then that of all that was installed.
        let text = STARTER.replace("{key}", &self.key());
        std::fs::write(&starter, text).map_err(fail)?;
        std::fs::set_permissions(&starter, PermissionsExt::from_mode(0o755)).map_err(fail)
    }

    /// Makes a venv with these requirements in it; its Python.
    async fn venv(
        &self,
        folder: &Path,
        name: &str,
        requirements: &str,
        python: &Path,
    ) -> Result<PathBuf, InstallError> {
        let make = ["-I", "-m", "venv", name];
        self.run("making a venv", python, folder, make).await?;
        let python = folder.join(name).join("bin/python");
        let install = [
            "-I",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--no-cache-dir",
            // The lists are whole: nothing that they do not name may come in, nor be compiled.
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "-r",
            requirements,
        ];
        self.run("`pip install`", &python, folder, install).await?;
        Ok(python)
    }

    /// The version that an installed server tells: the proof that it starts.
    async fn version(&self, folder: &Path) -> Result<String, InstallError> {
        let program = folder.join("bin").join(&self.recipe.program);
        let step = "starting the server for its version";
        let spec = self.spec(step, &program, folder, ["--version"]);
        let reported = self.outcome(step, spec, VERSION_LIMIT).await?;
        let version = reported.lines().next().unwrap_or_default().trim();
        Ok(version
            .strip_prefix("version: ")
            .unwrap_or(version)
            .to_owned())
    }

    async fn run<const N: usize>(
        &self,
        step: &'static str,
        program: &Path,
        dir: &Path,
        args: [&str; N],
    ) -> Result<String, InstallError> {
        let spec = self.spec(step, program, dir, args);
        self.outcome(step, spec, LIMIT).await
    }

    fn spec<const N: usize>(
        &self,
        step: &str,
        program: &Path,
        dir: &Path,
        args: [&str; N],
    ) -> Spec {
        let shim = self.around.shim;
        let mut spec = Spec::new(step, program, dir, Sandbox::ProcessGroup, shim);
        spec.args = args.map(Into::into).into();
        spec.env = self.env.clone();
        spec
    }

    async fn outcome(
        &self,
        step: &'static str,
        spec: Spec,
        limit: Duration,
    ) -> Result<String, InstallError> {
        let outcome = run_step(spec, limit).await;
        outcome.map_err(|error| InstallError::Step {
            server: self.name(),
            step,
            error,
        })
    }
}

fn environment(operator: &BTreeMap<OsString, OsString>) -> Vec<(OsString, OsString)> {
    let passed = |name: &OsString| NOT_PASSED.iter().all(|n| name != OsStr::new(n));
    let operator = operator.iter().filter(|(name, _)| passed(name));
    operator.map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// `3.11` as numbers, since `3.9` comes before it.
fn number(version: &str) -> Vec<u64> {
    version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(number("3.9") < number("3.10"));
        assert!(number("3.12") >= number("3.11"));
        assert!(number("4.0") > number("3.11"));
    }
}
