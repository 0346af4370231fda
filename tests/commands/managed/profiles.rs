//! Profiles that cannot be: refused with file, place, and what would be right.

use crate::managed::place::{Place, real};

#[test]
fn a_profile_that_cannot_be_started_is_refused_with_file_and_field() {
    for (from, to, message) in [
        (
            "{speed}",
            "{sped}",
            &[
                "start.args: ",
                "unknown placeholder \"sped\"",
                "did you mean \"speed\"?",
            ][..],
        ),
        (
            "[identity]",
            "[variables.unused]\nabout = \"x\"\n\n[identity]",
            &["variables.unused: ", "is used nowhere", "name {unused}"],
        ),
        (
            "\"{truth}\"",
            "\"{speed}\"",
            &["start.args: ", "names the placeholder {speed} twice"],
        ),
        (
            "\"{truth}\"",
            "\"{host}-{truth}\"",
            &["start.args: ", "names the placeholder {host} twice"],
        ),
        (
            "[variables.speed]",
            "[variables.port]\nabout = \"x\"\n\n[variables.speed]",
            &["variables.port: ", "of flashrig's own"],
        ),
        (
            "{host}:{port}",
            "{host}:80",
            &["start.args: ", "names no {port}"],
        ),
        (
            "\"{truth}\"",
            "\"{truth}{env.HOME}\"",
            &["start.args: ", "{env.HOME} may stand in start.env only"],
        ),
        (
            "default = 4",
            "default = \"{speed}\"",
            &[
                "variables.max_concurrent.default: ",
                "unknown placeholder \"speed\"",
            ],
        ),
        (
            "values = [1, 2, 4]",
            "values = [1, \"two\"]",
            &[
                "variables.max_concurrent.values: ",
                "is two, but must be a whole number",
            ],
        ),
        (
            "values = [1, 2, 4]",
            "values = [1, 2, 1]",
            &["variables.max_concurrent.values: ", "holds 1 twice"],
        ),
        (
            "default = 50.0",
            "default = 50.0\nreported_in = { path = \"/props\" }",
            &[
                "variables.speed.reported_in: ",
                "needs `path` and `field`, or `metric`",
            ],
        ),
        (
            "[reset]\nrestart = true",
            "[reset]",
            &["reset: ", "says nothing"],
        ),
        (
            "kind = \"managed\"",
            "kind = \"attached\"\nurl = \"http://h:1\"",
            &["start: ", "belongs to managed servers only"],
        ),
        (
            "kind = \"managed\"",
            "kind = \"managed\"\nurl = \"http://h:1\"",
            &["url: ", "--server NAME@http://HOST:PORT"],
        ),
        (
            "[identity]",
            "[ready]\nlimit = \"soon\"\n\n[identity]",
            &["ready.limit: ", "`soon` is not a duration"],
        ),
        (
            "[identity]",
            "[ready]\npath = \"health\"\n\n[identity]",
            &["ready.path: ", "begins with /"],
        ),
        // Those that the parser finds have their line.
        (
            r"pattern = 'flashrig (\S+)'",
            r"pattern = 'flashrig (\S+'",
            &["x.toml:34:11: ", "is not a regular expression"],
        ),
        (
            r"(?<max_concurrent>\d+)",
            r"(?<max_concurrent>\d+",
            &["x.toml:41:11: ", "is not a regular expression"],
        ),
        (
            "\"sim\",",
            "7,",
            &[
                "x.toml:8:3: ",
                "an argument in quotes, or a list of arguments",
            ],
        ),
        (
            "[variables.share]",
            "[variables.speed]",
            &["x.toml:26:", "duplicate key"],
        ),
    ] {
        let place = Place::new();
        let profile = real().replacen(from, to, 1);
        assert_ne!(profile, real(), "{from} is not in it");
        place.profile("x", &profile);
        let ran = place.run(&["ttft", "--server", "x"]);
        assert_eq!(ran.code, Some(2), "{to}: {}", ran.err);
        ran.says(&["x.toml"]);
        ran.says(message);
    }
}

#[test]
fn the_schema_of_profiles_knows_every_built_in_one() {
    let place = Place::new();
    let schema = place.run(&["schema", "server"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/servers");
    let mut profiles: Vec<String> = vec![real()];
    for entry in std::fs::read_dir(folder).unwrap() {
        profiles.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    for text in profiles {
        let table: toml::Table = toml::from_str(&text).unwrap();
        let value = serde_json::to_value(table).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
}
