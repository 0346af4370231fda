//! `agents list`, `tasks list` and `tasks verify` in a project with files of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn flashrig(project: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_flashrig"))
        .args(args)
        .current_dir(project)
        .env("FLASHRIG_CACHE", project.join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write(project: &TempDir, path: &str, text: &str) {
    let path = project.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The built-in task `fix-bug` as a task of the project, its `task.toml` changed.
fn own_task(project: &TempDir, name: &str, change: impl Fn(String) -> String) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks/fix-bug");
    let mut open = vec![from.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let below = path.strip_prefix(&from).unwrap().to_str().unwrap();
            let mut text = fs::read_to_string(&path).unwrap();
            if below == "task.toml" {
                text = change(text);
            }
            write(project, &format!("tasks/{name}/{below}"), &text);
        }
    }
}

fn row(listed: &Ran, name: &str) -> Value {
    let rows: Value = serde_json::from_str(&listed.out).unwrap();
    let mut rows = rows.as_array().unwrap().iter();
    rows.find(|row| row["name"] == name).unwrap().clone()
}

#[test]
fn a_list_of_agents_has_the_sound_ones_beside_a_bad_one_and_names_the_projects_files() {
    let project = TempDir::new().unwrap();
    let built_in = flashrig_harness::HARNESS.get_file("agents/command.toml");
    let text = built_in.unwrap().contents_utf8().unwrap();
    write(&project, "harness/agents/command.toml", text);
    write(
        &project,
        "harness/agents/bad.toml",
        &text.replace("title =", "titel ="),
    );
    let listed = flashrig(project.path(), &["agents", "list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert_eq!(
        row(&listed, "command")["file"],
        "harness/agents/command.toml"
    );
    assert_eq!(row(&listed, "claude")["file"], Value::Null);
    let error = row(&listed, "bad")["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("bad.toml:") && error.contains("titel: unknown field \"titel\""),
        "{error}"
    );
    let asked_for = flashrig(project.path(), &["agents", "install", "bad"]);
    assert_eq!(asked_for.code, Some(2), "{}", asked_for.err);
}

#[test]
fn a_list_of_tasks_has_the_sound_ones_beside_a_bad_one_and_names_the_projects_folders() {
    let project = TempDir::new().unwrap();
    own_task(&project, "fix-bug", |text| text);
    own_task(&project, "bad", |text| text.replace("title =", "titel ="));
    let listed = flashrig(project.path(), &["tasks", "list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert_eq!(row(&listed, "fix-bug")["folder"], "tasks/fix-bug");
    assert_eq!(row(&listed, "add-flag")["folder"], Value::Null);
    let error = row(&listed, "bad")["error"].as_str().unwrap().to_owned();
    assert!(
        error.contains("bad/task.toml:2:1: titel: unknown field \"titel\""),
        "{error}"
    );
    let text = flashrig(project.path(), &["tasks", "list"]).out;
    assert!(text.contains(", from tasks/fix-bug"), "{text}");
    let asked_for = flashrig(project.path(), &["tasks", "verify", "bad"]);
    assert_eq!(asked_for.code, Some(2), "{}", asked_for.err);
}

#[test]
fn a_failing_verification_shows_the_end_of_what_the_check_printed_and_globs_that_match_nothing() {
    let project = TempDir::new().unwrap();
    own_task(&project, "own", |text| {
        let mut table: toml::Table = toml::from_str(&text).unwrap();
        let mut check = table["checks"].as_array().unwrap()[0].clone();
        let fields = check.as_table_mut().unwrap();
        fields.insert("name".into(), "loud".into());
        fields.insert(
            "run".into(),
            "sh -c 'printf \"\\033[31mfirst\\007\\nthe reason\\n\"; exit 3'".into(),
        );
        fields.insert("before".into(), "fail".into());
        fields.remove("must_print");
        table["checks"].as_array_mut().unwrap().insert(0, check);
        let globs = table["protected"].as_array_mut().unwrap();
        globs.push("nowhere/**".into());
        toml::to_string(&table).unwrap()
    });
    let args = ["tasks", "verify", "own", "--sandbox", "none"];
    let ran = flashrig(project.path(), &args);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    for part in [
        "protected: no file matches `nowhere/**`",
        "the reference solution must pass but: check loud exited with 3",
        "the end of what loud printed:\n            first\n            the reason\n",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}
