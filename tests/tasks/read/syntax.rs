//! A file that cannot be read as its format says is told with line, column and field.

use crate::read::project::{fixture_error, task_error, walkthrough_error};

#[test]
fn what_is_no_toml_is_placed_by_line_and_column() {
    let error = task_error("title = \"Say hello\"", "title = Say hello");
    assert!(error.starts_with("tasks/greet/task.toml:2:9: "), "{error}");
}

#[test]
fn an_unknown_field_is_named_with_its_place() {
    assert_eq!(
        task_error("max_lines = 20", "max_line = 20"),
        "tasks/greet/task.toml:21:1: diff.max_line: unknown field \"max_line\"; known: max_files, \
         max_lines; did you mean \"max_lines\"?"
    );
    let error = task_error("must_print =", "prints =");
    assert!(
        error.starts_with("tasks/greet/task.toml:17:1: checks[0].prints: unknown field \"prints\""),
        "{error}"
    );
    let error = fixture_error("overlay =", "overlays =");
    assert!(
        error.starts_with("fixtures/hello/fixture.toml:11:1: commits[0].overlays: unknown field"),
        "{error}"
    );
    assert_eq!(
        walkthrough_error("new = ", "with = "),
        "tasks/greet/walkthrough.toml:11:8: steps[1].with: unknown field \"with\"; known: say, path, \
         old, new"
    );
    assert_eq!(
        walkthrough_error("do = \"edit\"", "do = \"patch\""),
        "tasks/greet/walkthrough.toml:7:1: steps[1]: unknown value \"patch\"; known: read, \
         search, edit, write, run, say"
    );
    assert_eq!(
        walkthrough_error("text = \"Done.\"\n", ""),
        "tasks/greet/walkthrough.toml:13:1: field `steps[2].text` is missing; add it"
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_place() {
    assert_eq!(
        task_error("max_files = 2", "max_files = \"two\""),
        "tasks/greet/task.toml:20:13: diff.max_files: must be a whole number of 0 or more, \
         not the text \"two\""
    );
    assert_eq!(
        task_error("before = \"fail\"", "before = \"maybe\""),
        "tasks/greet/task.toml:16:10: checks[0].before: unknown value \"maybe\"; known: pass, \
         fail"
    );
}

#[test]
fn a_missing_field_is_named() {
    let error = task_error("time_limit = \"1m30s\"\n", "");
    assert_eq!(
        error,
        "tasks/greet/task.toml:12:1: field `checks[0].time_limit` is missing; add it"
    );
}

#[test]
fn another_version_of_a_format_is_told_before_anything_else() {
    assert_eq!(
        task_error("flashrig.task/1\"", "flashrig.task/2\"\nnovelty = 1"),
        "tasks/greet/task.toml:1:10: schema: this file says `flashrig.task/2`; this flashrig \
         reads `flashrig.task/1`"
    );
    assert_eq!(
        task_error("schema = \"flashrig.task/1\"\n", ""),
        "tasks/greet/task.toml: field `schema` is missing; begin the file with `schema = \
         \"flashrig.task/1\"`"
    );
    assert_eq!(
        fixture_error("flashrig.fixture/1", "flashrig.task/1"),
        "fixtures/hello/fixture.toml:1:10: schema: this file says `flashrig.task/1`; this \
         flashrig reads `flashrig.fixture/1`"
    );
    assert_eq!(
        walkthrough_error("walkthrough/1", "walkthrough/3"),
        "tasks/greet/walkthrough.toml:1:10: schema: this file says `flashrig.walkthrough/3`; \
         this flashrig reads `flashrig.walkthrough/1`"
    );
}
