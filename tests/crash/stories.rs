//! The crash tests: SIGKILL under load, SIGTERM under load, a second server, a damaged log.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;

use rustix::process::Signal;

use crate::directory;
use crate::installation::{Installation, PATIENCE, Server, free_address};
use crate::ledger::{CrashTotals, KillTrigger, Ledger};
use crate::load::Load;
use crate::seeded_random::SeededRandom;
use crate::{api_emails, sink};

/// Concurrent clients.
const CLIENTS: usize = 8;
/// Default number of kills.
const KILLS: u64 = 6;

/// A server under load, and its ledger.
struct Scene {
    installation: Installation,
    api_key: String,
    ledger: Arc<Ledger>,
    load: Load,
}

impl Scene {
    async fn open() -> (Self, Server) {
        let ledger = Arc::new(Ledger::new());
        let host = sink::start(&ledger).await;
        let (installation, server, api_key) = Installation::create(host).await;
        let load = Load::start(CLIENTS, installation.relay, &ledger);
        (Self { installation, api_key, ledger, load }, server)
    }

    /// Waits until the queue is empty, then compares the ledger with the API.
    async fn finish(self, server: Server) -> (Installation, CrashTotals) {
        let Self { installation, api_key, ledger, load } = self;
        load.stop().await;
        ledger.wait_for_arrivals().await;
        empty_queue(&installation).await;
        let emails = api_emails::read(installation.api, &api_key).await;
        let (totals, faults) = ledger.check_invariants(&emails);
        server.stop().await;
        let report = installation.admin(&["store", "check"]).await;
        assert!(report["sound"] == true, "{report}");
        assert!(faults.is_empty(), "{totals}\n{} rules broken:\n{}", faults.len(), faults.join("\n"));
        (installation, totals)
    }
}

/// Polls the admin command until the queue is empty.
async fn empty_queue(installation: &Installation) {
    let drained = async {
        loop {
            let queue = installation.admin(&["queue", "list"]).await;
            if queue["tasks"].as_array().unwrap().is_empty() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, drained).await.expect("the queue drains");
}

#[tokio::test]
async fn sigkill_under_load_loses_no_acknowledged_message() {
    let kills = std::env::var("CRASH_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let (mut random, seed) = SeededRandom::seeded();
    let (mut scene, server) = Scene::open().await;
    // After a kill without load, the account and domain that the admin commands created are still there.
    server.signal(Signal::KILL);
    server.wait_for_exit().await;
    for _ in 0..kills {
        let trigger = if random.in_range(0, 1) == 0 { KillTrigger::Acknowledged } else { KillTrigger::Arrived };
        // Some kills happen while the server delivers the backlog of the last kill, before it is ready.
        let before_ready = random.in_range(0, 3) == 0;
        let count = random.in_range(1, if before_ready { 5 } else { 380 });
        let (ledger, config) = (Arc::clone(&scene.ledger), scene.installation.config());
        let kill_after = |pid| ledger.kill_after(trigger, count, pid, Signal::KILL);
        let status = match scene.installation.run(&config, kill_after).await {
            Ok(server) => {
                scene.load.resume();
                server.wait_for_exit().await
            }
            Err(failure) => failure.status,
        };
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "the server was not killed: {status}");
    }
    let server = scene.installation.start().await;
    scene.load.resume();
    scene.ledger.wait_for_acknowledged(20).await;
    let (_, totals) = scene.finish(server).await;
    println!("seed {seed}, kills {kills}: {totals}");
    assert!(totals.duplicates <= totals.connections_cut, "{totals}");
    assert_eq!((totals.lost, totals.refused), (0, 0), "{totals}");
}

#[tokio::test]
async fn sigterm_under_load_exits_0_without_loss_or_duplicates() {
    const STOPS: u64 = 3;
    let (mut random, seed) = SeededRandom::seeded();
    let (mut scene, mut server) = Scene::open().await;
    for _ in 0..STOPS {
        scene.ledger.kill_after(KillTrigger::Acknowledged, random.in_range(20, 150), server.pid(), Signal::TERM);
        scene.load.resume();
        let status = server.wait_for_exit().await;
        assert_eq!(status.code(), Some(0), "{status}");
        server = scene.installation.start().await;
    }
    scene.load.resume();
    scene.ledger.wait_for_acknowledged(20).await;
    let (_, totals) = scene.finish(server).await;
    println!("seed {seed}, stops {STOPS}: {totals}");
    let CrashTotals { lost, duplicates, unconfirmed, .. } = totals;
    assert_eq!((lost, duplicates, unconfirmed), (0, 0, 0), "{totals}");
}

#[tokio::test]
async fn sigterm_right_after_ready_exits_0() {
    let (mut scene, server) = Scene::open().await;
    server.stop().await;
    for _ in 0..5 {
        scene.installation.start().await.stop().await;
    }
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused() {
    let (mut scene, server) = Scene::open().await;
    let other = scene.installation.configure("second.toml", free_address(), free_address(), "");
    let failure = scene.installation.expect_refusal(Some(&other)).await;
    assert!(!failure.status.success(), "{failure:?}");
    assert!(failure.log.contains("in use by another process"), "{}", failure.log);
    let (sound, result) = scene.installation.run_admin(&["store", "check"]).await;
    assert!(sound && result["sound"] == true, "the running server checks its store: {result}");
    // The first server is not affected: it accepts mail and answers admin commands.
    scene.load.resume();
    scene.ledger.wait_for_acknowledged(20).await;
    scene.finish(server).await;
}

/// A server killed with mail in its queue. Delivery was paused, so that nothing was attempted. Returns the number of
/// acknowledged messages.
async fn kill_with_full_queue() -> (Scene, u64) {
    let (mut scene, server) = Scene::open().await;
    server.stop().await;
    let (relay, api) = (scene.installation.relay, scene.installation.api);
    scene.installation.configure("postrider.toml", relay, api, "paused = true\n");
    let server = scene.installation.start().await;
    scene.ledger.kill_after(KillTrigger::Acknowledged, 40, server.pid(), Signal::KILL);
    scene.load.resume();
    server.wait_for_exit().await;
    scene.installation.configure("postrider.toml", relay, api, "");
    (scene, 40)
}

async fn check_reports_damage(installation: &Installation) {
    let (sound, result) = installation.run_admin(&["store", "check"]).await;
    assert!(!sound && result["sound"] == false && result["faults"][0]["fault"].is_string(), "{result}");
}

/// Asserts that the server refuses to start, names the damaged file, and changes no byte of the log.
async fn start_reports_damage(installation: &mut Installation, damaged: &std::path::Path) {
    let log_of = |installation: &Installation| {
        let mut found = directory::read_files(&installation.data());
        // redb sets its dirty flag on open; the later restart shows that its contents are intact.
        found.retain(|path, _| path.extension().is_none_or(|ending| ending != "redb"));
        found
    };
    let before = log_of(installation);
    let failure = installation.expect_refusal(None).await;
    assert!(!failure.status.success() && failure.status.code().is_some(), "{failure:?}");
    let file_name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(failure.log.contains(file_name) && failure.log.contains("acknowledged data is damaged"), "{}", failure.log);
    let after = log_of(installation);
    assert!(before == after, "the directory was modified: {:?} and {:?}", before.keys(), after.keys());
}

#[tokio::test]
async fn a_corrupt_group_in_the_log_is_refused_and_not_modified() {
    let (mut scene, _) = kill_with_full_queue().await;
    let log = directory::segment_files(&scene.installation.data()).pop().expect("a segment");
    // The last group but one: the group after it proves that it was once complete.
    let group_offsets = directory::group_offsets(&log);
    let middle = group_offsets[group_offsets.len() - 2];
    directory::invert_bytes(&log, middle, 100);
    start_reports_damage(&mut scene.installation, &log).await;
    check_reports_damage(&scene.installation).await;
    // After the bytes are restored, all messages are there.
    directory::invert_bytes(&log, middle, 100);
    let server = scene.installation.start().await;
    scene.load.resume();
    scene.ledger.wait_for_acknowledged(1).await;
    let (_, totals) = scene.finish(server).await;
    assert!(totals.acknowledged > 40, "{totals}");
}

#[tokio::test]
async fn a_log_truncated_behind_its_checkpoint_is_refused_and_not_modified() {
    let (mut scene, _) = kill_with_full_queue().await;
    let (relay, api) = (scene.installation.relay, scene.installation.api);
    scene.installation.configure("postrider.toml", relay, api, "paused = true\n");
    // A clean stop writes a checkpoint: nothing is replayed afterwards, and the bodies stay in the log.
    let server = scene.installation.start().await;
    let queue = scene.installation.admin(&["queue", "list"]).await;
    assert!(queue["tasks"].as_array().unwrap().len() >= 40, "{queue}");
    server.stop().await;
    let log = directory::segment_files(&scene.installation.data()).pop().expect("a segment");
    let original = std::fs::read(&log).unwrap();
    directory::truncate(&log, directory::used_bytes(&log) / 2);
    check_reports_damage(&scene.installation).await;
    start_reports_damage(&mut scene.installation, &log).await;
    std::fs::write(&log, original).unwrap();
    scene.installation.configure("postrider.toml", relay, api, "");
    let server = scene.installation.start().await;
    scene.finish(server).await;
}
