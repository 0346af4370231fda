use super::*;
use crate::agent::Library;

fn values() -> Values {
    Values {
        prompt: "say \"hi\"\nnow".into(),
        base_url: "http://127.0.0.1:1".into(),
        token: "t".into(),
        model: "m/1 \"q\"".into(),
        workspace: "/w".into(),
        home: "/h".into(),
        context: 8192,
        client_limit_ms: 1000,
        proxy_url: "http://127.0.0.1:9".into(),
    }
}

fn operator() -> BTreeMap<OsString, OsString> {
    [
        ("PATH", "/bin"),
        ("HOME", "/nowhere"),
        ("ANTHROPIC_API_KEY", "sentinel"),
        ("HTTP_PROXY", "sentinel"),
        ("LANG", "C.UTF-8"),
    ]
    .map(|(k, v)| (k.into(), v.into()))
    .into()
}

#[test]
fn a_json_file_stays_valid_json_whatever_the_values() {
    let profile = Library::new(None).load("opencode").unwrap();
    let launch = launch(&profile, Path::new("/o"), None, &values(), &operator());
    let json: serde_json::Value = serde_json::from_str(&launch.files[0].1).unwrap();
    assert_eq!(json["model"], "flashrig/m/1 \"q\"");
    assert_eq!(
        json["provider"]["flashrig"]["models"]["m/1 \"q\""]["limit"]["context"],
        8192
    );
}

#[test]
fn nothing_of_the_operators_environment_passes_but_the_allow_list() {
    for name in Library::new(None).names() {
        let profile = Library::new(None).load(&name).unwrap();
        let launch = launch(&profile, Path::new("/o"), None, &values(), &operator());
        for (key, value) in &launch.env {
            assert_ne!(value, "sentinel", "{name}: {key:?}");
            assert_ne!(value, "/nowhere", "{name}: {key:?}");
        }
        let of = |k: &str| {
            launch
                .env
                .iter()
                .find(|(n, _)| n == k)
                .map(|(_, v)| v.clone())
        };
        assert_eq!(of("LANG"), Some("C.UTF-8".into()));
        assert_eq!(of("HOME"), Some("/h".into()));
    }
}

#[test]
fn every_agent_is_led_to_the_guard_and_past_it_to_loopback() {
    for name in Library::new(None).names() {
        let profile = Library::new(None).load(&name).unwrap();
        assert!(profile.egress_allow.is_empty(), "{name}");
        let launch = launch(&profile, Path::new("/o"), None, &values(), &operator());
        let env: BTreeMap<_, _> = launch.env.into_iter().collect();
        for variable in ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "npm_config_proxy"] {
            let value = env[&OsString::from(variable)]
                .to_string_lossy()
                .into_owned();
            assert_eq!(value, "http://127.0.0.1:9", "{name}: {variable}");
        }
        for variable in ["NO_PROXY", "no_proxy"] {
            let value = env[&OsString::from(variable)]
                .to_string_lossy()
                .into_owned();
            assert!(
                value.starts_with("127.0.0.1,localhost,::1"),
                "{name}: {value}"
            );
        }
    }
}

#[test]
fn a_prompt_with_spaces_and_quotes_stays_one_argument_of_a_command() {
    let profile = Library::new(None).load("command").unwrap();
    let command = CommandLine::parse("sh -c 'echo $1' x {prompt} --in={workspace}").unwrap();
    let launch = launch(
        &profile,
        Path::new("/bin/sh"),
        Some(&command),
        &values(),
        &operator(),
    );
    let args: Vec<OsString> = ["-c", "echo $1", "x", "say \"hi\"\nnow", "--in=/w"]
        .map(OsString::from)
        .into();
    assert_eq!(launch.args, args);
}
