//! Every fault of a fixture or a walkthrough gives one clear error that names file and field.

use crate::read::project::{Project, WALKTHROUGH, fixture_error, walkthrough_error};

#[test]
fn a_bad_value_of_the_fixture_is_named_with_its_place() {
    for (old, new, expected) in [
        (
            "executable = [\"run.sh\"]",
            "executable = [\"go.sh\"]",
            "3:15: executable[0]: no file of tree/ matches `go.sh`",
        ),
        (
            "2024-01-01T10:00:00Z",
            "2024-01-01T10:00:00+01:00",
            "8:8: commits[0].date: `2024-01-01T10:00:00+01:00` is not a time in UTC; write it \
             like `2024-03-01T09:30:00Z`",
        ),
        (
            "2024-01-02T10:00:00Z",
            "2023-01-02T10:00:00Z",
            "16:8: commits[1].date: lies before the commit above it; commits stand oldest first",
        ),
        (
            "message = \"Begin\"",
            "message = \"\"",
            "9:11: commits[0].message: is empty",
        ),
        (
            "\".gitignore\"",
            "\".ignore\"",
            "10:20: commits[0].files[1]: no file of tree/ matches `.ignore`",
        ),
        (
            "history/01",
            "../../secrets",
            "11:11: commits[0].overlay: `../../secrets` leaves its folder; `..` is not allowed",
        ),
        (
            "history/01",
            "history/09",
            "11:11: commits[0].overlay: the folder fixtures/hello/history/09 is missing or empty",
        ),
        (
            "delete = [\"OLD\"]",
            "delete = [\"NEW\"]",
            "19:11: commits[1].delete[0]: there is no file `NEW` at this point of the history",
        ),
        (
            "delete = [\"OLD\"]",
            "",
            "13:1: commits[1]: the last commit must end with exactly tree/: `OLD` is not in \
             tree/; remove it with `delete`",
        ),
        (
            "files = [\"src/*\"]",
            "",
            "13:1: commits[1]: the last commit must end with exactly tree/: `src/hello.txt` is \
             still an older version; add it to `files`",
        ),
        (
            "files = [\"run.sh\", \".gitignore\"]",
            "files = [\"run.sh\"]",
            "13:1: commits[1]: the last commit must end with exactly tree/: `.gitignore` is in \
             tree/ but in no commit; add it to `files`",
        ),
        (
            "files = [\"src/*\"]\ndelete = [\"OLD\"]",
            "",
            "13:1: commits[1]: changes nothing",
        ),
    ] {
        assert_eq!(
            fixture_error(old, new),
            format!("fixtures/hello/fixture.toml:{expected}")
        );
    }
}

#[test]
fn a_fixture_s_tree_must_be_there_and_unambiguous() {
    let project = Project::new();
    project.write("fixtures/hello/tree/.gitignore", "/other\n");
    assert_eq!(
        project.error(),
        "fixtures/hello/tree/.gitignore: stands beside `.gitignore.in`, which becomes the same \
         file"
    );
    let project = Project::new();
    std::fs::remove_dir_all(project.path().join("fixtures/hello/tree")).unwrap();
    assert_eq!(
        project.error(),
        "fixtures/hello/tree: the folder is missing or empty"
    );
}

#[test]
fn a_bad_step_of_the_walkthrough_is_named_with_its_place() {
    for (old, new, expected) in [
        (
            "old = \"nothing,\"",
            "old = \"nothing\"",
            "10:7: steps[1].old: is in `src/hello.txt` 2 times; it must be unique",
        ),
        (
            "old = \"nothing,\"",
            "old = \"something\"",
            "10:7: steps[1].old: is not in `src/hello.txt` at this step",
        ),
        (
            "old = \"nothing,\"",
            "old = \"\"",
            "10:7: steps[1].old: is empty",
        ),
        (
            "new = \"hello\"",
            "new = \"nothing,\"",
            "11:7: steps[1].new: is the same as `old`",
        ),
        (
            "do = \"read\"\npath = \"src/hello.txt\"",
            "do = \"read\"\npath = \"src/hallo.txt\"",
            "5:8: steps[0].path: there is no file `src/hallo.txt` at this step",
        ),
        (
            "do = \"read\"\npath = \"src/hello.txt\"",
            "do = \"read\"\npath = \"../hello.txt\"",
            "5:8: steps[0].path: `../hello.txt` leaves its folder; `..` is not allowed",
        ),
        (
            "do = \"read\"\n",
            "do = \"search\"\npattern = \"(\"\n",
            "5:11: steps[0].pattern: `(` is not a regular expression",
        ),
        (
            "[[steps]]\ndo = \"say\"\ntext = \"Done.\"\n",
            "",
            "3:1: steps: must end with a step `do = \"say\"`, which ends the session",
        ),
    ] {
        assert_eq!(
            walkthrough_error(old, new),
            format!("tasks/greet/walkthrough.toml:{expected}")
        );
    }
}

#[test]
fn edits_after_a_command_of_unknown_effect_are_not_judged() {
    let project = Project::new();
    let run = |command: &str| {
        let step = format!("[[steps]]\ndo = \"run\"\ncommand = \"{command}\"\n\n[[steps]]\n");
        WALKTHROUGH.replacen("[[steps]]\n", &step, 1)
    };
    project.write(
        "tasks/greet/walkthrough.toml",
        &run("sed -i s/x/y/ src/hello.txt"),
    );
    assert!(project.library().load("greet").is_ok());
    project.write("tasks/greet/walkthrough.toml", &run("cargo test"));
    assert!(
        project
            .error()
            .contains("steps[2].old: is in `src/hello.txt` 2 times")
    );
}
