//! One destination does not reply: mail to all others is not delayed.

use crate::world::TestWorld;
use crate::world::sink::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_stalls_delays_nobody_else() {
    let world = TestWorld::start().await;
    world.sink.script("tar@slow.example", &[Behaviour::Stall; 100]);
    for n in 0..30 {
        world.relay(&["tar@slow.example"], &format!("stuck {n}")).await;
    }
    for n in 0..30 {
        world.relay(&["one@dest.example"], &format!("free {n}")).await;
    }
    let received = world.sink.wait_for(30).await;
    assert!(received.iter().all(|message| message.recipient == "one@dest.example"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_destinations_leave_memory_for_others() {
    let world = TestWorld::start_with("tasks_in_memory_max = 100\n").await;
    for slow in ["slow.example", "other.example"] {
        let to = format!("tar@{slow}");
        world.sink.script(&to, &[Behaviour::Stall; 500]);
        for n in 0..150 {
            world.relay(&[&to], &format!("stuck {n}")).await;
        }
    }
    for n in 0..20 {
        world.relay(&["one@dest.example"], &format!("free {n}")).await;
    }
    let received = world.sink.wait_for(20).await;
    assert!(received.iter().all(|message| message.recipient == "one@dest.example"));
}
