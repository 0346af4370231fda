//! Tasks are found by name and loaded whole.

use crate::read::project::{Project, TASK};
use flashrig::task::{Library, Source, TaskError};

#[test]
fn a_sound_project_is_loaded_whole() {
    let project = Project::new();
    let task = project
        .library()
        .load("greet")
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(task.prompt, "Greet the world.");
    assert_eq!(task.time_limit.as_secs(), 600);
    assert_eq!(task.checks[0].run, ["sh", "tests/check.sh"]);
    assert_eq!(task.checks[0].time_limit.as_secs(), 90);
    assert_eq!(task.hidden[0].bytes, b"cat src/hello.txt\n");
    assert_eq!(
        (task.diff_limit.files, task.diff_limit.lines),
        (Some(2), Some(20))
    );
    assert_eq!(task.walkthrough.map(|w| w.steps.len()), Some(3));

    let Source::Fixture(fixture) = task.source else {
        panic!("not a fixture")
    };
    let files = |commit: usize| -> Vec<(String, String, bool)> {
        let files = &fixture.commits[commit].files;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        files
            .iter()
            .map(|f| (f.path.clone(), text(&f.bytes), f.executable))
            .collect()
    };
    let file = |path: &str, text: &str, executable| (path.into(), text.into(), executable);
    assert_eq!(
        files(0),
        [
            file(".gitignore", "/target\n", false),
            file("OLD", "\n", false),
            file("run.sh", "cat src/hello.txt\n", true),
            file("src/hello.txt", "\n", false),
        ]
    );
    assert_eq!(
        files(1),
        [
            file(".gitignore", "/target\n", false),
            file("run.sh", "cat src/hello.txt\n", true),
            file("src/hello.txt", "nothing, nothing at all\n", false),
        ]
    );
    assert_eq!(fixture.commits[0].time, 1_704_103_200);
    assert_eq!(fixture.commits[0].message, "Begin\n");
}

#[test]
fn the_project_s_task_wins_over_the_built_in_one_of_the_same_name() {
    let project = Project::new();
    for file in [
        "prompt.md",
        "solution.patch",
        "cheats/lie.patch",
        "hidden/check.sh",
    ] {
        let text = std::fs::read_to_string(project.path().join("tasks/greet").join(file)).unwrap();
        project.write(&format!("tasks/fix-bug/{file}"), &text);
    }
    project.write("tasks/fix-bug/task.toml", TASK);
    let library = project.library();
    assert_eq!(library.names().unwrap(), ["add-flag", "fix-bug", "greet"]);
    assert_eq!(library.load("fix-bug").unwrap().title, "Say hello");
    assert!(library.load("fix-bug").unwrap().walkthrough.is_none());
    let folder = |name: &str| library.project_folder(name).unwrap();
    assert_eq!(folder("fix-bug").as_deref(), Some("tasks/fix-bug"));
    assert_eq!(library.load("fix-bug").unwrap().folder, folder("fix-bug"));
    assert_eq!(folder("add-flag"), None);
    assert_eq!(folder("nope"), None);
}

#[test]
fn an_unknown_task_is_answered_with_the_nearest_name_and_the_list() {
    let library = Library::new(None);
    assert_eq!(
        library.load("fixbug").unwrap_err().to_string(),
        "unknown task \"fixbug\"; known: add-flag, fix-bug; did you mean \"fix-bug\"?"
    );
    assert_eq!(
        library.load("refactor").unwrap_err(),
        TaskError::UnknownTask {
            name: "refactor".into(),
            known: vec!["add-flag".into(), "fix-bug".into()]
        }
    );
    for name in ["", ".", "..", "../tasks/fix-bug", "fix-bug/cheats"] {
        assert!(
            matches!(library.load(name), Err(TaskError::UnknownTask { .. })),
            "{name}"
        );
    }
}

#[test]
fn a_repository_is_found_relative_to_the_task_s_folder() {
    let project = Project::new();
    let source = "repo = \"../../mine\"\nrev = \"v1\"";
    project.write(
        "tasks/greet/task.toml",
        &TASK.replace("fixture = \"hello\"", source),
    );
    let error = project.error();
    assert!(
        error.starts_with("tasks/greet/task.toml:3:8: repo: there is no folder "),
        "{error}"
    );

    std::fs::create_dir(project.path().join("mine")).unwrap();
    let task = project
        .library()
        .load("greet")
        .unwrap_or_else(|e| panic!("{e}"));
    let Source::Repository { path, revision } = task.source else {
        panic!("not a repository")
    };
    let expected = project.path().join("mine").canonicalize().unwrap();
    assert_eq!(
        (path.canonicalize().unwrap(), revision.as_str()),
        (expected, "v1")
    );
}

#[test]
fn a_patch_needs_no_line_of_git_and_a_bad_one_is_refused_with_the_reason() {
    let project = Project::new();
    let patch = std::fs::read_to_string(project.path().join("tasks/greet/solution.patch")).unwrap();
    let plain = patch.replace("diff --git a/src/hello.txt b/src/hello.txt\n", "");
    assert_ne!(plain, patch);
    project.write("tasks/greet/solution.patch", &plain);
    assert_eq!(project.library().load("greet").unwrap().solution, plain);
    for (text, reason) in [
        ("Just a note.\n", "is a patch that changes no file"),
        (
            &plain.replace("@@ -1 +1 @@", "@@ -1,2 +1,2 @@")[..],
            "is not a patch that git can read: not a valid diff, at line 1: hunk @@ \
             -1,2 +1,2 @@ is cut off",
        ),
    ] {
        project.write("tasks/greet/solution.patch", text);
        assert_eq!(
            project.error(),
            format!("tasks/greet/solution.patch: {reason}")
        );
    }
}
