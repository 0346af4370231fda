//! Servers behind doors, as people reach them: https with a CA of its own, HTTP Basic, headers, a
//! Unix socket, IPv6, a base path; through `pair`, `ttft`, `servers probe` and `gateway`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use flashrig_testkit::doors::{Authority, Door, Guard, Leaf, Valid};
use tempfile::TempDir;

use crate::pair::stage::{Ran, Stage};
use crate::support::http::fetch;
use crate::support::serving::Serving;

/// A simulated server, and the CA of the doors before it.
struct House {
    server: Serving,
    authority: Authority,
    folder: TempDir,
}

const PASSWORD: &str = "hunter2-hunter2";
const HEADER: &str = "open-sesame-1234";

impl House {
    fn new() -> Self {
        let authority = Authority::default();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
        Self {
            server: Serving::start(["sim", "--listen", "127.0.0.1:0", "--speed", "1000"]),
            authority,
            folder,
        }
    }

    fn to(&self) -> SocketAddr {
        self.server.addr.parse().unwrap()
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn leaf(&self, valid: Valid) -> Leaf {
        self.authority.leaf(&["localhost", "::1"], valid)
    }

    /// A door on an IPv6 address that wants the header.
    fn headed(&self) -> (Door, String) {
        let guard = refusing(
            &format!("x-door: {HEADER}\r\n"),
            "403 No\r\nContent-Type: text/html",
        );
        let door = Door::tls("::1", self.leaf(Valid::Now), Some(guard), self.to());
        let url = format!("https://[::1]:{}/llm/v1", door.port);
        (door, url)
    }

    /// A door that wants HTTP Basic.
    fn basic(&self) -> (Door, String) {
        // anna:hunter2-hunter2
        let guard = refusing(
            "authorization: Basic YW5uYTpodW50ZXIyLWh1bnRlcjI=\r\n",
            "401 No\r\nWWW-Authenticate: Basic realm=x",
        );
        let door = Door::tls("127.0.0.1", self.leaf(Valid::Now), Some(guard), self.to());
        let url = format!("https://localhost:{}", door.port);
        (door, url)
    }
}

fn refusing(line: &str, answer: &str) -> Guard {
    Guard {
        line: line.to_owned(),
        refusal: format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n"),
    }
}

fn with_secrets(command: &mut Command) -> Ran {
    command
        .env("MY_BASIC", format!("anna:{PASSWORD}"))
        .env("MY_HEADER", HEADER);
    Ran::of(command.output().unwrap())
}

/// Runs `flashrig` in a folder of its own.
fn flashrig(args: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
    command.args(args).env_clear().current_dir(folder.path());
    let ran = with_secrets(&mut command);
    no_secret_below(folder.path());
    ran
}

/// No file has what opened the door, in whatever form.
fn no_secret_below(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            no_secret_below(&entry.path());
        } else if let Ok(bytes) = fs::read(entry.path()) {
            for secret in [PASSWORD, HEADER, "YW5uYTpodW50ZXIy"] {
                let found = memchr::memmem::find(&bytes, secret.as_bytes());
                assert!(found.is_none(), "{secret} in {}", entry.path().display());
            }
        }
    }
}

const PAIR: [&str; 8] = [
    "pair", "--json", "--agent", "mine", "--task", "tiny", "--rounds", "1",
];

#[test]
fn pair_reaches_a_server_behind_tls_ipv6_a_header_and_a_base_path_and_stores_no_secret() {
    let house = House::new();
    let (_door, url) = house.headed();
    let ca = house.ca();
    let ca = ca.to_str().unwrap();
    let stage = Stage::with(&["ask", "result"]);
    let mut args = PAIR.to_vec();
    args.extend(["--server", &url, "--ca", ca]);
    args.extend(["--header-env", "X-Door=MY_HEADER"]);
    let ran = with_secrets(&mut stage.flashrig(&args));
    let record = ran.record();
    assert_eq!(record["server"]["url"], url.trim_end_matches("/v1"));
    let asked = record["rounds"][0]["arms"][0]["sessions"][0]["requests"].as_u64();
    assert!(asked > Some(0), "{ran:#?}");
    assert_eq!(
        record["rounds"][0]["arms"][0]["sessions"][0]["refusals"], 0,
        "{ran:#?}"
    );
    no_secret_below(&stage.results());

    let mut args = PAIR.to_vec();
    args.extend(["--server", &url, "--ca", ca]);
    let ran = with_secrets(&mut stage.flashrig(&args));
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("--header-env"), "{}", ran.stderr);
}

#[test]
fn ttft_reaches_a_server_behind_tls_and_basic_typed_into_its_address() {
    let house = House::new();
    let (_door, url) = house.basic();
    let ca = house.ca();
    let ca = ca.to_str().unwrap();
    let typed = url.replace("localhost", &format!("anna:{PASSWORD}@localhost"));
    let ran = flashrig(&[
        "ttft", "--json", "--agents", "1", "--rounds", "1", "--server", &typed, "--ca", ca,
    ]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let record = ran.record();
    assert_eq!(record["server"]["url"], url);
    for stream in [&ran.stdout, &ran.stderr] {
        assert!(!stream.contains(PASSWORD), "{ran:#?}");
    }
    let ran = flashrig(&["ttft", "--server", &url, "--ca", ca]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("--basic-env"), "{}", ran.stderr);
}

#[test]
fn probe_reaches_a_server_over_a_unix_socket_and_behind_tls_with_basic() {
    let house = House::new();
    let socket = house.folder.path().join("llm.sock");
    let _unix = Door::unix(&socket, house.to());
    let unix = format!("unix:{}", socket.display());
    let (_door, url) = house.basic();
    let ca = house.ca();
    let basic = ["--ca", ca.to_str().unwrap(), "--basic-env", "MY_BASIC"];
    for (server, more) in [(&unix, &[][..]), (&url, &basic)] {
        let args = [&["servers", "probe", "--json", server][..], more].concat();
        let ran = flashrig(&args);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(ran.record()["url"], **server);
        assert_eq!(ran.record()["generates"], "yes");
    }
}

#[test]
fn gateway_gives_plain_clients_a_server_behind_tls_a_header_and_a_base_path() {
    let house = House::new();
    let (_door, url) = house.headed();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashrig"));
    let ca = house.ca();
    command
        .args(["gateway", "--listen", "127.0.0.1:0", "--upstream", &url])
        .args(["--header-env", "X-Door=MY_HEADER", "--ca"])
        .arg(&ca)
        .env("MY_HEADER", HEADER);
    let (gateway, told) = Serving::run(command);
    assert!(told.contains(url.trim_end_matches("/v1")), "{told}");
    let (status, models) = fetch(&gateway.addr, "GET", "/v1/models", "");
    assert_eq!(status, 200, "{models}");
}

#[test]
fn a_wrong_certificate_and_an_expired_one_say_so_in_every_command() {
    let house = House::new();
    let ca = house.ca();
    let ca = ca.to_str().unwrap();
    let expired = Door::tls("127.0.0.1", house.leaf(Valid::Expired), None, house.to());
    let expired_url = format!("https://localhost:{}", expired.port);
    let good = Door::tls("127.0.0.1", house.leaf(Valid::Now), None, house.to());
    let unknown = format!("https://localhost:{}", good.port);
    let wrong = format!("https://127.0.0.1:{}", good.port);
    let stage = Stage::with(&["ask", "result"]);
    for (url, trusted, word) in [
        (&expired_url, true, "expired"),
        (&unknown, false, "--ca FILE"),
        (&wrong, true, "not for 127.0.0.1"),
    ] {
        let of_ca: &[&str] = if trusted { &["--ca", ca] } else { &[] };
        let pair = [&PAIR[..], &["--server", url], of_ca].concat();
        let pair = Ran::of(stage.flashrig(&pair).output().unwrap());
        let ttft = flashrig(&[&["ttft", "--server", url][..], of_ca].concat());
        let probe = flashrig(&[&["servers", "probe", url][..], of_ca].concat());
        for ran in [pair, ttft, probe] {
            assert_eq!(ran.code, Some(3), "{ran:#?}");
            assert!(ran.stderr.contains(word), "{ran:#?}");
        }
    }
}

#[test]
fn what_opens_a_door_is_checked_before_anything_is_asked() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("no.pem");
    for (more, word) in [
        (
            &["--ca", missing.to_str().unwrap()][..],
            "no.pem cannot be read",
        ),
        (&["--basic-env", "NOT_SET"], "NOT_SET"),
        (&["--basic-env", "MY_HEADER"], "user:pass"),
        (&["--header-env", "X-Door=NOT_SET"], "the header X-Door"),
        (&["--header-env", "Host=MY_HEADER"], "flashrig itself"),
        (&["--header-env", "X-Door"], "NAME=VARIABLE"),
    ] {
        let ran = flashrig(&[&["servers", "probe", "https://h"][..], more].concat());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
        assert!(!ran.stderr.contains(HEADER), "{}", ran.stderr);
    }
}

#[test]
fn a_profile_opens_the_door_of_its_server() {
    let house = House::new();
    let (_door, url) = house.headed();
    let stage = Stage::with(&["ask"]);
    stage.write(
        "harness/servers/mine.toml",
        &format!(
            "schema = \"flashrig.server/1\"\nkind = \"attached\"\ntitle = \"x\"\nurl = {url:?}\n\
             ca = {:?}\n[header_env]\nX-Door = \"MY_HEADER\"\n",
            house.ca()
        ),
    );
    let mut command = stage.flashrig(&["servers", "probe", "--json", "mine"]);
    let ran = with_secrets(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(ran.record()["url"], url.trim_end_matches("/v1"));
}

/// Passes requests on to `to`; the `nth` request to generate from the start on is sent elsewhere.
fn redirecting(to: SocketAddr, nth: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut generations = 0;
        for stream in listener.incoming() {
            let mut client = stream.unwrap();
            let mut chunk = [0; 64 << 10];
            let length = client.read(&mut chunk).unwrap_or(0);
            generations += usize::from(chunk.starts_with(b"POST /v1/chat"));
            if chunk.starts_with(b"POST /v1/chat") && generations >= nth {
                let answer = format!(
                    "HTTP/1.1 307 Go\r\nLocation: http://{to}/v1/chat/completions\r\n\
                     Content-Length: 0\r\nConnection: close\r\n\r\n"
                );
                let _ = client.write_all(answer.as_bytes());
                continue;
            }
            std::thread::spawn(move || {
                let mut server = std::net::TcpStream::connect(to).unwrap();
                server.write_all(&chunk[..length]).unwrap();
                let mut back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut client, &mut server));
                let _ = std::io::copy(&mut back.0, &mut back.1);
            });
        }
    });
    format!("http://{own}")
}

#[test]
fn a_redirect_in_mid_run_is_named_invalidates_the_round_and_is_not_followed() {
    let house = House::new();
    let stage = Stage::with(&["ask", "ask", "result"]);
    stage.speak_openai("mine");
    // Two requests warm up; the agent's second is sent away.
    let url = redirecting(house.to(), 4);
    let mut args = PAIR.to_vec();
    args.extend(["--server", &url]);
    let ran = Ran::of(stage.flashrig(&args[..]).output().unwrap());
    let record = ran.record();
    let reasons = record["rounds"][0]["invalid_reasons"].to_string();
    assert!(
        reasons.contains("redirected") && reasons.contains(&house.server.addr),
        "{reasons}\n{ran:#?}"
    );
}

#[test]
fn a_server_that_redirects_is_named_with_the_address_to_give() {
    let answer =
        "HTTP/1.1 308 Go\r\nLocation: https://llm.example/v1/models\r\nContent-Length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let stage = Stage::with(&["ask", "result"]);
    let pair = [&PAIR[..], &["--server", &url]].concat();
    let pair = Ran::of(stage.flashrig(&pair).output().unwrap());
    let probe = flashrig(&["servers", "probe", &url]);
    for ran in [pair, probe] {
        assert_eq!(ran.code, Some(3), "{ran:#?}");
        let word =
            "answers 308 and points to https://llm.example/v1/models: give https://llm.example";
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
}
