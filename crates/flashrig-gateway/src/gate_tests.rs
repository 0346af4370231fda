use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use super::*;

fn gate(limit: u32, order: GateOrder) -> Arc<Gate> {
    Gate::new(NonZeroU32::new(limit).unwrap(), order)
}

/// The permit of a turn that has one already.
fn now(turn: Turn) -> Option<Permit> {
    let waiting = pin!(turn.wait());
    match waiting.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

/// Lets all in, one after the other, and gives their names in the order in which they went.
fn order_of(order: GateOrder, asks: &[(&'static str, u8, Role, u64)]) -> Vec<&'static str> {
    let gate = gate(1, order);
    let clients: Vec<GateClient> = (0..10).map(|_| gate.client()).collect();
    let mut holder = now(clients[0].line_up(Role::Main, 1));
    assert!(holder.is_some());
    let mut turns: Vec<(&'static str, Turn)> = asks
        .iter()
        .map(|(name, client, role, bytes)| {
            (*name, clients[usize::from(*client)].line_up(*role, *bytes))
        })
        .collect();
    let mut went = Vec::new();
    while !turns.is_empty() {
        drop(holder.take());
        let index = turns
            .iter_mut()
            .position(|(_, turn)| {
                holder = turn.receiver.try_recv().ok();
                holder.is_some()
            })
            .unwrap();
        went.push(turns.remove(index).0);
    }
    went
}

const MIXED: [(&str, u8, Role, u64); 4] = [
    ("long", 1, Role::Main, 900),
    ("short", 2, Role::Main, 100),
    ("title", 3, Role::Side, 500),
    ("shortest", 4, Role::Main, 50),
];

#[test]
fn fifo_lets_in_who_came_first() {
    let went = order_of(GateOrder::Fifo, &MIXED);
    assert_eq!(went, ["long", "short", "title", "shortest"]);
}

#[test]
fn side_first_lets_side_requests_in_before_main_ones_and_each_kind_as_it_came() {
    let went = order_of(GateOrder::SideFirst, &MIXED);
    assert_eq!(went, ["title", "long", "short", "shortest"]);
}

#[test]
fn shortest_first_lets_in_the_smallest_body() {
    let went = order_of(GateOrder::ShortestFirst, &MIXED);
    assert_eq!(went, ["shortest", "short", "title", "long"]);
}

#[test]
fn the_requests_of_one_session_and_role_keep_their_order_in_every_order() {
    let asks = [
        ("first", 1, Role::Main, 900),
        ("second", 1, Role::Main, 10),
        ("other", 2, Role::Main, 100),
    ];
    let went = order_of(GateOrder::ShortestFirst, &asks);
    assert_eq!(went, ["other", "first", "second"]);
}

#[test]
fn nobody_is_overtaken_more_often_than_the_bound() {
    let mut asks = vec![("main", 1, Role::Main, 1000)];
    asks.extend([("side", 2, Role::Side, 10)].repeat(50));
    for order in [GateOrder::SideFirst, GateOrder::ShortestFirst] {
        let went = order_of(order, &asks);
        let place = went.iter().position(|name| *name == "main");
        assert_eq!(place, Some(MAX_OVERTAKEN as usize), "{order:?}");
    }
}

#[test]
fn a_request_learns_what_it_found_and_how_often_it_was_overtaken() {
    let gate = gate(1, GateOrder::SideFirst);
    let (a, b) = (gate.client(), gate.client());
    let first = a.line_up(Role::Main, 1);
    assert!(!first.is_held());
    let first = now(first).unwrap();
    let main = a.line_up(Role::Main, 1);
    let side = b.line_up(Role::Side, 1);
    let fact = |let_in, in_line| GateFact {
        let_in,
        in_line,
        overtaken: 0,
    };
    assert_eq!((main.found(), side.found()), (fact(1, 0), fact(1, 1)));
    assert!(main.is_held() && side.is_held());
    drop(first);
    let side = now(side).unwrap();
    assert_eq!(side.overtaken(), 0);
    drop(side);
    assert_eq!(now(main).unwrap().overtaken(), 1);
}

#[test]
fn who_leaves_while_waiting_is_passed_over() {
    let gate = gate(1, GateOrder::Fifo);
    let client = gate.client();
    let holder = now(client.line_up(Role::Main, 1)).unwrap();
    let leaves = client.line_up(Role::Main, 1);
    let stays = client.line_up(Role::Main, 1);
    assert_eq!(gate.counts(), (1, 2));
    drop(leaves);
    assert_eq!(gate.counts(), (1, 1));
    drop(holder);
    assert!(now(stays).is_some());
    assert_eq!(gate.counts(), (0, 0));
}

#[test]
fn who_leaves_with_its_permit_on_the_way_frees_the_place() {
    let gate = gate(1, GateOrder::Fifo);
    let client = gate.client();
    let holder = now(client.line_up(Role::Main, 1)).unwrap();
    let leaves = client.line_up(Role::Main, 1);
    let stays = client.line_up(Role::Main, 1);
    drop(holder);
    // It has its permit and never looked.
    drop(leaves);
    assert!(now(stays).is_some());
    assert_eq!(gate.counts(), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_tasks_that_come_stay_and_leave_never_exceed_the_limit_and_none_is_lost() {
    for order in [
        GateOrder::Fifo,
        GateOrder::SideFirst,
        GateOrder::ShortestFirst,
    ] {
        let gate = gate(3, order);
        let inside = Arc::new(AtomicU32::new(0));
        let most = Arc::new(AtomicU32::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..200_u32 {
            let (client, inside, most) = (gate.client(), inside.clone(), most.clone());
            tasks.spawn(async move {
                let role = if n % 3 == 0 { Role::Side } else { Role::Main };
                let turn = client.line_up(role, u64::from(n * 37 % 101));
                if n % 5 == 0 {
                    // Some leave while they wait, or with a permit that they never looked at.
                    tokio::task::yield_now().await;
                    return 0;
                }
                let permit = turn.wait().await;
                let with_me = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(with_me, Ordering::SeqCst);
                for _ in 0..n % 7 {
                    tokio::task::yield_now().await;
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
                1
            });
        }
        let mut served = 0;
        while let Some(one) = tasks.join_next().await {
            served += one.unwrap();
        }
        assert_eq!(served, 160, "{order:?}");
        let most = most.load(Ordering::SeqCst);
        assert!((1..=3).contains(&most), "{order:?}: {most}");
        assert_eq!(gate.counts(), (0, 0), "{order:?}");
    }
}
