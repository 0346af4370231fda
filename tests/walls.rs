//! The walls between the crates: what each of them may never depend on, read from `cargo metadata`.
//! A boundary that is only a sentence in a document does not last.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// Crates that open sockets or run tasks.
const ASYNC: &[&str] = &["hyper", "hyper-util", "mio", "socket2", "tokio"];
/// Crates that touch files, repositories or processes.
const FILES: &[&str] = &["duct", "git2", "ignore", "reflink-copy", "tempfile"];

/// Crates that speak TLS.
const TLS: &[&str] = &["ring", "rustls", "rustls-native-certs", "tokio-rustls"];
/// Crates that would bring C++, cmake or OpenSSL into the build.
const FOREIGN: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "cmake",
    "native-tls",
    "openssl",
    "openssl-sys",
];

/// What one crate may know.
struct Wall {
    name: &'static str,
    /// The only crates of this workspace that it may depend on, directly or through others.
    may_know: &'static [&'static str],
    /// Other people's crates that it must not depend on, directly or through others.
    forbidden: &'static [&'static [&'static str]],
}

const WALLS: &[Wall] = &[
    Wall {
        name: "llm-observe",
        may_know: &[],
        forbidden: &[ASYNC, FILES, &["nix"]],
    },
    Wall {
        name: "flashrig-clock",
        may_know: &[],
        forbidden: &[ASYNC, FILES],
    },
    Wall {
        name: "flashrig-units",
        may_know: &[],
        forbidden: &[ASYNC, FILES, &["nix"]],
    },
    Wall {
        name: "flashrig-config",
        may_know: &["flashrig-units"],
        forbidden: &[ASYNC, FILES, &["nix"]],
    },
    Wall {
        name: "flashrig-harness",
        may_know: &[],
        forbidden: &[ASYNC, FILES, &["nix"]],
    },
    Wall {
        name: "flashrig-record",
        may_know: &["flashrig-clock", "flashrig-units", "llm-observe"],
        forbidden: &[ASYNC, FILES],
    },
    Wall {
        name: "flashrig-report",
        may_know: &[
            "flashrig-clock",
            "flashrig-config",
            "flashrig-record",
            "flashrig-units",
            "llm-observe",
        ],
        forbidden: &[ASYNC, FILES],
    },
    Wall {
        name: "flashrig-http",
        may_know: &["flashrig-clock", "llm-observe"],
        forbidden: &[FILES],
    },
    Wall {
        name: "flashrig-gateway",
        may_know: &[
            "flashrig-clock",
            "flashrig-http",
            "flashrig-record",
            "flashrig-units",
            "llm-observe",
        ],
        forbidden: &[FILES],
    },
    Wall {
        name: "flashrig-load",
        may_know: &[
            "flashrig-clock",
            "flashrig-http",
            "flashrig-record",
            "flashrig-units",
            "llm-observe",
        ],
        forbidden: &[FILES],
    },
    Wall {
        name: "flashrig-process",
        may_know: &["flashrig-clock", "flashrig-units"],
        forbidden: &[&["git2", "hyper", "ignore"]],
    },
    Wall {
        name: "flashrig-sim",
        may_know: &["flashrig-clock", "flashrig-units", "llm-observe"],
        forbidden: &[FILES],
    },
    Wall {
        name: "flashrig-workspace",
        may_know: &[
            "flashrig-clock",
            "flashrig-record",
            "flashrig-units",
            "llm-observe",
        ],
        forbidden: &[ASYNC],
    },
    Wall {
        name: "flashrig-server",
        may_know: &[
            "flashrig-clock",
            "flashrig-config",
            "flashrig-harness",
            "flashrig-http",
            "flashrig-process",
            "flashrig-record",
            "flashrig-sim",
            "flashrig-units",
            "llm-observe",
        ],
        forbidden: &[&["git2", "ignore"]],
    },
];

/// The workspace as cargo sees it.
struct Workspace {
    members: BTreeMap<String, Value>,
    /// Name of a package to the names of what it is built from; what only tests need is left out.
    needs: BTreeMap<String, BTreeSet<String>>,
}

impl Workspace {
    fn read() -> &'static Self {
        static READ: LazyLock<Workspace> = LazyLock::new(Workspace::from_cargo);
        &READ
    }

    fn from_cargo() -> Self {
        let host = cargo(&["-vV"]);
        let host = host.lines().find_map(|line| line.strip_prefix("host: "));
        // Of other systems nothing is downloaded, so that this needs no network.
        let metadata = cargo(&[
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            host.unwrap(),
        ]);
        let metadata: Value = serde_json::from_str(&metadata).unwrap();
        let packages: BTreeMap<&str, &Value> = array(&metadata["packages"])
            .map(|package| (text(&package["id"]), package))
            .collect();
        let name = |id: &Value| text(&packages[text(id)]["name"]).to_owned();
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in array(&metadata["resolve"]["nodes"]) {
            let built_from = array(&node["deps"])
                .filter(|dep| array(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null()))
                .map(|dep| name(&dep["pkg"]));
            // Two versions of a crate under one name: what either needs.
            needs
                .entry(name(&node["id"]))
                .or_default()
                .extend(built_from);
        }
        let members = array(&metadata["workspace_members"])
            .map(|id| (name(id), packages[text(id)].clone()))
            .collect();
        Self { members, needs }
    }

    /// All that a crate is built from, directly or through others.
    fn closure<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for need in &self.needs[next] {
                if found.insert(need.as_str()) {
                    open.push(need);
                }
            }
        }
        found
    }
}

fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn no_crate_depends_on_what_it_must_not_know() {
    let workspace = Workspace::read();
    let mut broken = Vec::new();
    for wall in WALLS {
        for need in workspace.closure(wall.name) {
            let own = workspace.members.contains_key(need);
            if own && !wall.may_know.contains(&need)
                || !own && wall.forbidden.concat().contains(&need)
            {
                broken.push(format!("{} must not depend on {need}", wall.name));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn tls_is_known_where_servers_are_reached_and_brings_no_foreign_library() {
    let workspace = Workspace::read();
    let mut broken = Vec::new();
    for name in workspace.members.keys() {
        let needs = workspace.closure(name);
        let reaches_servers = name == "flashrig-http" || needs.contains("flashrig-http");
        // What tests share stands in as a server.
        let may_speak = reaches_servers || name == "flashrig-testkit";
        let further = if may_speak { &[][..] } else { TLS };
        for need in FOREIGN.iter().chain(further) {
            if needs.contains(need) {
                broken.push(format!("{name} must not depend on {need}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_crate_has_a_wall_a_readme_of_one_screen_and_an_example() {
    let workspace = Workspace::read();
    let mut missing = Vec::new();
    let mut examples = BTreeSet::new();
    for (name, package) in &workspace.members {
        // The root knows everything; what the tests share is not published.
        if name == "flashrig" || name == "flashrig-testkit" {
            continue;
        }
        if !WALLS.iter().any(|wall| wall.name == name) {
            missing.push(format!("{name}: a wall in tests/walls.rs"));
        }
        let folder = Path::new(text(&package["manifest_path"])).parent().unwrap();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        if !(5..=60).contains(&readme.lines().count()) {
            missing.push(format!("{name}: a README.md of one screen, 5 to 60 lines"));
        }
        let example = array(&package["targets"])
            .find(|target| array(&target["kind"]).any(|kind| text(kind) == "example"));
        match example.map(|target| text(&target["name"])) {
            None => missing.push(format!("{name}: an example below examples/")),
            Some(example) if !examples.insert(example) => {
                missing.push(format!("{name}: an example of another name than {example}"));
            }
            Some(_) => {}
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn what_only_tests_need_is_in_no_published_crate() {
    let workspace = Workspace::read();
    for name in workspace.members.keys() {
        assert!(
            !workspace.closure(name).contains("flashrig-testkit"),
            "{name} is built from flashrig-testkit, which only tests may use"
        );
    }
}

/// `cargo run --example NAME` refuses a name that two crates use.
#[test]
fn no_two_crates_have_an_example_of_the_same_name() {
    let workspace = Workspace::read();
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, package) in &workspace.members {
        for target in array(&package["targets"]) {
            if array(&target["kind"]).any(|kind| text(kind) == "example") {
                owners.entry(text(&target["name"])).or_default().push(name);
            }
        }
    }
    owners.retain(|_, crates| crates.len() > 1);
    assert!(owners.is_empty(), "{owners:#?}");
}
