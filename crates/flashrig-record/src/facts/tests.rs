use super::*;

#[test]
fn quick() {
    let f = SessionFailure::CheckFailed {
        check: "t".into(),
        detail: CheckDetail::Exited { exit_code: 3 },
    };
    let v = serde_json::to_value(&f).unwrap();
    println!("{v}");
    let back: SessionFailure = serde_json::from_value(v).unwrap();
    assert_eq!(back, f);
    let p: Placed<InvalidReason> = Placed {
        places: vec![Place::session("a")],
        fact: InvalidReason::Overlapped,
    };
    let v = serde_json::to_value(&p).unwrap();
    println!("{v}");
    let back: Placed<InvalidReason> = serde_json::from_value(v).unwrap();
    assert_eq!(back, p);
    for c in codes() {
        println!("{c:?}");
    }
    println!(
        "{}",
        serde_json::to_string_pretty(&schemars::schema_for!(Placed<InvalidReason>)).unwrap()
    );
}
