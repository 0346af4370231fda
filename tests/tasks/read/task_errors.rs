//! Every fault of a task gives one clear error that names file and field.

use crate::read::project::{Project, TASK, task_error};

#[test]
fn an_unknown_fixture_is_answered_with_the_nearest_name_and_the_list() {
    assert_eq!(
        task_error("fixture = \"hello\"", "fixture = \"helo\""),
        "tasks/greet/task.toml:3:11: fixture: unknown fixture \"helo\"; known: hello, \
         tinyledger, worklog; did you mean \"hello\"?"
    );
}

#[test]
fn a_task_starts_from_one_thing_only() {
    let cases = [
        (
            "",
            "tasks/greet/task.toml: field `fixture` is missing; name a fixture, or a repository with \
              `repo` and `rev`",
        ),
        (
            "repo = \".\"",
            "tasks/greet/task.toml: field `rev` is missing; `repo` needs a revision to \
                          start from",
        ),
        (
            "fixture = \"hello\"\nrev = \"main\"",
            "tasks/greet/task.toml:4:7: rev: has no effect \
                                                 without `repo`; remove it",
        ),
        (
            "fixture = \"hello\"\nrepo = \".\"",
            "tasks/greet/task.toml:4:8: repo: stands beside \
                                               `fixture`; a task starts from one of the two",
        ),
        (
            "repo = \".\"\nrev = \"\"",
            "tasks/greet/task.toml:4:7: rev: `` is not a revision",
        ),
    ];
    for (new, expected) in cases {
        assert_eq!(task_error("fixture = \"hello\"", new), expected);
    }
}

#[test]
fn checks_must_be_there_and_be_told_apart() {
    let checks = TASK.find("[[checks]]").unwrap()..TASK.find("[diff]").unwrap();
    let one = &TASK[checks.clone()];
    let project = Project::new();
    project.write(
        "tasks/greet/task.toml",
        &TASK.replace(one, "").replace("needs", "checks = []\nneeds"),
    );
    assert_eq!(
        project.error(),
        "tasks/greet/task.toml:4:10: checks: is empty; without a check nothing tells whether \
         the task is done"
    );
    project.write(
        "tasks/greet/task.toml",
        &TASK.replace(one, &format!("{one}{one}")),
    );
    assert_eq!(
        project.error(),
        "tasks/greet/task.toml:20:8: checks[1].name: `hello` is there twice"
    );
    assert_eq!(
        task_error("before = \"fail\"", "before = \"pass\""),
        "tasks/greet/task.toml:12:1: checks: holds none with `before = \"fail\"`; the untouched \
         repository would do"
    );
}

#[test]
fn a_bad_value_of_the_task_is_named_with_its_place() {
    for (old, new, expected) in [
        (
            "title = \"Say hello\"",
            "title = \" \"",
            "2:9: title: is empty; say in one line what the task is",
        ),
        (
            "[\"cargo\"]",
            "[\"cargo\", \"./x\"]",
            "4:19: needs[1]: `./x` is not the name of a program on PATH",
        ),
        (
            "\"10m\"",
            "\"10\"",
            "5:14: time_limit: `10` has no unit; write it like `10s` or `10m`",
        ),
        (
            "\"10m\"",
            "\"0s\"",
            "5:14: time_limit: `0s` leaves no time at all",
        ),
        (
            "\"1m30s\"",
            "\"soon\"",
            "15:14: checks[0].time_limit: `soon` is not a duration; write it like `90s`, `10m` \
             or `1h30m`",
        ),
        (
            "tests/**",
            "tests/[a",
            "6:14: protected[0]: `tests/[a` is not a glob: unclosed character class; missing ']'",
        ),
        (
            "tests/**",
            "../**",
            "6:14: protected[0]: the glob `../**` leaves its folder",
        ),
        (
            "hidden/check.sh",
            "../greet/hidden/check.sh",
            "9:8: hidden[0].from: `../greet/hidden/check.sh` leaves its folder; `..` is not \
             allowed",
        ),
        (
            "tests/check.sh\"\n\n",
            "/tests/check.sh\"\n\n",
            "10:6: hidden[0].to: `/tests/check.sh` is not a relative path with forward slashes",
        ),
        (
            "tests/check.sh\"\n\n",
            ".git/hooks/x\"\n\n",
            "10:6: hidden[0].to: `.git/hooks/x` reaches into `.git`, which belongs to flashrig",
        ),
        (
            "hidden/check.sh",
            "hidden/no.sh",
            "9:8: hidden[0].from: there is no file tasks/greet/hidden/no.sh",
        ),
        (
            "name = \"hello\"",
            "name = \"hel lo\"",
            "13:8: checks[0].name: `hel lo` is not a name; use letters, digits, `-` and `_`",
        ),
        (
            "\"sh tests/check.sh\"",
            "\"\"",
            "14:7: checks[0].run: names no program",
        ),
        (
            "\"sh tests/check.sh\"",
            "\"sh 'tests\"",
            "14:7: checks[0].run: cannot be split: missing closing quote",
        ),
        (
            "'^hello\\b'",
            "'^(hello'",
            "17:14: checks[0].must_print: is not a regular expression: unclosed group",
        ),
        (
            "max_lines = 20",
            "max_lines = 0",
            "21:13: diff.max_lines: is 0, which no solution can keep to",
        ),
        (
            "cheats/lie.patch",
            "cheats/no.patch",
            "25:9: cheats[0].patch: there is no file tasks/greet/cheats/no.patch",
        ),
    ] {
        assert_eq!(
            task_error(old, new),
            format!("tasks/greet/task.toml:{expected}")
        );
    }
}

#[test]
fn a_missing_or_unusable_file_beside_the_task_is_named() {
    let project = Project::new();
    std::fs::remove_file(project.path().join("tasks/greet/prompt.md")).unwrap();
    assert_eq!(
        project.error(),
        "tasks/greet/prompt.md: the file is missing"
    );
    project.write("tasks/greet/prompt.md", "\n \n");
    assert_eq!(
        project.error(),
        "tasks/greet/prompt.md: is empty; say what the agent is to do"
    );

    let project = Project::new();
    project.write("tasks/greet/solution.patch", "just some words\n");
    let error = project.error();
    assert!(
        error.starts_with("tasks/greet/solution.patch: is "),
        "{error}"
    );
    std::fs::remove_file(project.path().join("tasks/greet/solution.patch")).unwrap();
    assert_eq!(
        project.error(),
        "tasks/greet/solution.patch: the file is missing"
    );

    let project = Project::new();
    std::fs::write(project.path().join("tasks/greet/prompt.md"), b"one\n\xff\n").unwrap();
    assert_eq!(
        project.error(),
        "tasks/greet/prompt.md: line 2 is not UTF-8 text"
    );
}
