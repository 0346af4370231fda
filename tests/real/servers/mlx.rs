//! mlx-lm's server: a sound one, and one whose generation thread dies behind a front that says it is
//! well.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use flashrig_server::install::{Manifest, Surroundings, install};

use crate::servers::stage::{Real, agent, cache, environment, flashrig, installed, one_at_a_time};

/// The older version, which does not go with the pinned version of mlx.
const OLD: &str = "mlx-lm==0.31.2 \\
    --hash=sha256:2681b7652546d36128f43d6cc7698ec43529a1845a27350394d1843be63c652b \\
    --hash=sha256:a90a7905031b2580b4923f92e0fb156ca287f452bb1a9e41a60dcbc971532d46
";

/// The folder of the server that stalls: the one that flashrig installs, with mlx-lm 0.31.2 in it.
fn stalling() -> PathBuf {
    let manifest = Manifest::named("mlx-lm").unwrap().renamed("mlx-lm-stall");
    let text = manifest.file("requirements.txt").unwrap();
    let from = text.find("\nmlx-lm==0.32.2").unwrap() + 1;
    let after = from + text[from..].find("\nmlx-metal").unwrap() + 1;
    let text = format!("{}{OLD}{}", &text[..from], &text[after..]);
    let manifest = manifest.with_file("requirements.txt", text);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let done = runtime.block_on(install(
        &manifest,
        Surroundings {
            operator: &environment(),
            cache: &cache(),
            shim: env!("CARGO_BIN_EXE_flashrig").as_ref(),
        },
        |_: &str| (),
    ));
    let done = done.unwrap();
    assert_eq!(done.version, "mlx-lm 0.31.2, mlx 0.32.4");
    done.folder
}

#[test]
fn a_sound_one_is_probed_and_gives_first_tokens_to_1_2_and_4_at_once() {
    let _turn = one_at_a_time();
    let server = Real::mlx(&installed("mlx-lm"));
    let ran = flashrig(&["servers", "probe", &server.url(), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = ran.json();
    assert_eq!(found["generates"], "yes", "{found:#}");
    let fingerprint = found["fingerprint"].as_str().unwrap();
    assert!(fingerprint.starts_with("0.32.2-0.32.4-"), "{fingerprint}");

    let args = ["--agents", "1,2,4", "--prompt", "512", "--json"];
    let ran = flashrig(&[&["ttft", "--server", &server.url()], &args[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.json();
    for (row, agents) in record["ttft"].as_array().unwrap().iter().zip([1, 2, 4]) {
        assert_eq!(row["answered"], agents, "{row:#}");
        assert_eq!(row["stalled"], 0, "{row:#}");
    }
}

#[test]
fn a_dead_one_that_says_it_is_well_is_named_within_the_limit_by_probe_ttft_and_pair() {
    let _turn = one_at_a_time();
    let folder = stalling();
    let runs: [&[&str]; 3] = [
        &["servers", "probe"],
        &["ttft", "--agents", "1,2", "--server"],
        &[
            "pair", "--agent", "opencode", "--task", "fix-bug", "--server",
        ],
    ];
    agent("opencode");
    for args in runs {
        // Its first request kills it, so that each needs one of its own.
        let server = Real::mlx(&folder);
        let log = server.log_file();
        let url = server.url();
        let mut all = [args, &[&url, "--first-token-limit", "5s"]].concat();
        if args[0] != "servers" {
            all.extend(["--server-log", log.to_str().unwrap()]);
        }
        let before = Instant::now();
        let ran = flashrig(&all);
        let took = before.elapsed();
        let said = format!("{}{}", ran.out, ran.err);
        assert!(
            said.contains("accepts requests and does not generate"),
            "{said}"
        );
        // What its health check says, beside it.
        assert!(said.contains("200"), "{said}");
        if args[0] == "servers" {
            assert_eq!(ran.code, Some(1), "{ran:#?}");
        } else {
            assert_eq!(ran.code, Some(3), "{ran:#?}");
            assert!(said.contains("generated for none"), "{said}");
            assert!(said.contains("its log ends with"), "{said}");
            assert!(said.contains("There is no Stream"), "{said}");
        }
        // One limit, and what it takes to start, to prepare and to look for signs of life.
        assert!(took < Duration::from_secs(60), "{took:?}: {said}");
        assert!(
            server.log().contains("There is no Stream"),
            "{}",
            server.log()
        );
        assert_eq!(server.get("/health").0, 200);
    }
}
