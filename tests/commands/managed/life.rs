//! The life of a server as the runs see it: death, restart, reset, end.

use std::path::PathBuf;
use std::time::Duration;

use flashrig_server::{Connected, LifeError, StartError, Target, Wanted, check_flags, connect};
use flashrig_testkit::waiting::{soon, wait_until};
use nix::sys::signal::Signal;

use crate::managed::place::{FLASHRIG, Place, is_alive, real, scripted, signal};

fn target(place: &Place, name: &str) -> Target {
    let mut target = Target::parse(Some(name), None, Some(place.path())).unwrap();
    if let Target::Managed { places, .. } = &mut target {
        // Not this test's own binary.
        places.shim = PathBuf::from(FLASHRIG);
        places.cache = place.path().join("cache");
    }
    target
}

async fn started(place: &Place, name: &str) -> Connected {
    let target = target(place, name);
    connect(&target, &Wanted::default(), Vec::new(), None)
        .await
        .unwrap()
}

fn real_place() -> Place {
    let place = Place::new();
    place.profile("real", &real());
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_is_noticed_at_once_and_a_restart_is_at_the_same_address() {
    let place = real_place();
    let server = started(&place, "real").await;
    let life = server.life.clone();
    assert!(life.is_managed() && life.may_restart());
    let first = life.pid().unwrap();
    let waiting = tokio::spawn({
        let life = life.clone();
        async move { life.died().await }
    });
    signal(first, Signal::SIGKILL);
    let death = soon(waiting).await.unwrap();
    assert!(
        death.exit.to_string().contains("killed by SIGKILL")
            && death.exit.to_string().contains("not flashrig's"),
        "{}",
        death.exit
    );
    assert!(
        death
            .last_lines
            .iter()
            .any(|line| line.contains("listening on")),
        "{:?}",
        death.last_lines
    );
    assert_eq!(life.death(), Some(death));
    assert_eq!(life.pid(), None);

    let after = soon(life.restart()).await.unwrap();
    assert!(after > Duration::ZERO);
    assert_eq!(life.death(), None);
    let second = life.pid().unwrap();
    assert_ne!(first, second);
    let limit = Duration::from_secs(10);
    let answer = flashrig_http::ask(&server.upstream, "/v1/models", None, limit);
    let answer = answer.await.unwrap();
    assert_eq!(answer.status, 200);
    soon(life.stop()).await;
    assert!(!is_alive(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_asked_for_is_no_death() {
    let place = real_place();
    let server = started(&place, "real").await;
    let life = server.life.clone();
    let pid = life.pid().unwrap();
    let reset = soon(life.reset()).await.unwrap();
    assert!(life.can_reset() && reset > Duration::ZERO);
    assert!(!is_alive(pid), "a reset by restart is another process");
    soon(life.stop()).await;
    assert_eq!((life.death(), life.pid()), (None, None));
    let dead = tokio::time::timeout(Duration::from_millis(50), life.died()).await;
    assert!(dead.is_err(), "it was ended, and did not die: {dead:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_nobody_knows_of_a_server_any_more_it_is_ended() {
    let place = real_place();
    let server = started(&place, "real").await;
    let pid = server.life.pid().unwrap();
    drop(server);
    wait_until("it is gone", || !is_alive(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_come_back_says_why_and_stop_cuts_its_start_short() {
    let place = Place::new();
    // Ready once; the second time it loads for ever, the third time it fails.
    let script = place.script(&format!(
        "if [ -e second ]; then echo cannot load; exit 3; fi\n\
         if [ -e first ]; then touch second; echo loading; exec sleep 1000; fi\n\
         touch first\nexec {FLASHRIG} sim --listen 127.0.0.1:$2 2>&1"
    ));
    place.profile("fake", &scripted(&script, "10m"));
    let server = started(&place, "fake").await;
    let life = server.life.clone();
    let restarting = tokio::spawn({
        let life = life.clone();
        async move { life.restart().await }
    });
    let second = place.path().join("second");
    wait_until("it loads", || second.exists());
    soon(life.stop()).await;
    let cut = restarting.await.unwrap();
    assert!(matches!(cut, Err(LifeError::Ended)), "{cut:?}");

    let error = soon(life.restart()).await.unwrap_err();
    let LifeError::Start(StartError::Died { message, .. }) = &error else {
        panic!("{error}");
    };
    assert!(message.contains("exit code 3"), "{message}");
    assert!(error.to_string().contains("cannot load"), "{error}");
    assert!(
        life.death()
            .unwrap()
            .exit
            .to_string()
            .contains("did not come back")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_its_processes_use_is_known_while_it_runs() {
    let place = real_place();
    let server = started(&place, "real").await;
    let life = server.life.clone();
    wait_until("a sample comes", || life.usage().is_some());
    let (rss, _cpu) = life.usage().unwrap();
    assert!(rss.unwrap() > 1 << 20, "{rss:?}");
    assert!(life.peak_rss_bytes() >= rss);
    soon(life.stop()).await;
    assert_eq!(life.usage(), None);
    assert!(life.peak_rss_bytes().is_some(), "of the whole run");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_are_checked_without_starting_anything() {
    let place = real_place();
    check_flags(&target(&place, "real")).await.unwrap();
    place.profile("odd", &real().replace("\"--speed\"", "\"--sped\""));
    let error = check_flags(&target(&place, "odd")).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("did you mean \"--speed\"?"), "{message}");
}
