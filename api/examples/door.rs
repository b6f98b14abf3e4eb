//! A door by itself, for trying it with curl: prints its address and a key.

#[path = "../tests/world/mod.rs"]
mod world;

#[tokio::main]
async fn main() {
    let world = world::World::start().await;
    println!("http://{} {}", world.address, world.key);
    let _ = tokio::signal::ctrl_c().await;
    world.end().await;
}
