use super::*;
use crate::store::read_bodies;

#[tokio::test]
async fn bodies_are_let_go_and_counted_when_too_much_waits_for_the_disk() {
    let dir = tempfile::TempDir::new().unwrap();
    let bodies = Bodies::start(true);
    let session = bodies.session(dir.path(), Redactor::default());
    let body = Bytes::from_static(br#"{"messages":[]}"#);
    session.request(1, Dialect::OpenaiChat, body.clone());
    bodies.waiting.fetch_add(WAITING_BYTES, Ordering::Relaxed);
    session.request(2, Dialect::OpenaiChat, body.clone());
    session.answer(1, &body, false);
    session.answered(1);
    bodies.waiting.fetch_sub(WAITING_BYTES, Ordering::Relaxed);
    session.request(3, Dialect::OpenaiChat, body.clone());
    let found = session.finish().await.unwrap();
    assert_eq!((found.kept.bodies, found.kept.dropped), (4, 2));
    assert_eq!(
        bodies.waiting.load(Ordering::Relaxed),
        0,
        "all is given back"
    );
    bodies.close().unwrap();
    let mut omitted = Vec::new();
    let whole = read_bodies(&dir.path().join(BODIES_FILE), |line, _| {
        omitted.push((line.number, line.omitted));
        true
    });
    assert!(whole.unwrap());
    let dropped = Some(Omitted::Dropped);
    assert_eq!(omitted, [(1, None), (2, dropped), (1, dropped), (3, None)]);
}

#[tokio::test]
async fn a_compressed_answer_is_kept_as_its_length_and_hash_alone() {
    let dir = tempfile::TempDir::new().unwrap();
    let bodies = Bodies::start(true);
    let session = bodies.session(dir.path(), Redactor::default());
    session.answer(1, &Bytes::from_static(b"squeezed"), true);
    session.answered(1);
    session.finish().await.unwrap();
    bodies.close().unwrap();
    let mut lines = Vec::new();
    read_bodies(&dir.path().join(BODIES_FILE), |line, body| {
        lines.push((line, body.len()));
        true
    })
    .unwrap();
    let [(line, stored)] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!((line.length, *stored), (8, 0));
    assert_eq!(line.omitted, Some(Omitted::Encoded));
    assert_eq!(line.sha256.as_ref().unwrap().len(), 64);
}
