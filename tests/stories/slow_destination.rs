//! One destination does not answer: all others get their mail as if it were not there.

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
    let taken = world.sink.wait_for(30).await;
    assert!(taken.iter().all(|message| message.recipient == "one@dest.example"));
}
