//! The crash tests: SIGKILL under load, SIGTERM under load, a second server, a damaged log.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;

use rustix::process::Signal;

use crate::dice::Dice;
use crate::directory;
use crate::installation::{Installation, PATIENCE, Server, free_address};
use crate::ledger::{Figures, Ledger, Moment};
use crate::load::Load;
use crate::{books, sink};

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
        let (installation, server, api_key) = Installation::found(host).await;
        let load = Load::start(CLIENTS, installation.relay, &ledger);
        (Self { installation, api_key, ledger, load }, server)
    }

    /// Waits until the queue is empty, then compares the ledger with the API.
    async fn settle(self, server: Server) -> (Installation, Figures) {
        let Self { installation, api_key, ledger, load } = self;
        load.end().await;
        ledger.all_arrived().await;
        empty_queue(&installation).await;
        let books = books::read(installation.api, &api_key).await;
        let (figures, broken) = ledger.settle(&books);
        server.stop().await;
        let report = installation.admin(&["store", "check"]).await;
        assert!(report["sound"] == true, "{report}");
        assert!(broken.is_empty(), "{figures}\n{} rules broken:\n{}", broken.len(), broken.join("\n"));
        (installation, figures)
    }
}

/// Polls the admin command until the queue is empty.
async fn empty_queue(installation: &Installation) {
    let waiting = async {
        loop {
            let queue = installation.admin(&["queue", "list"]).await;
            if queue["tasks"].as_array().unwrap().is_empty() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the queue drains");
}

#[tokio::test]
async fn sigkill_under_load_loses_no_acknowledged_message() {
    let kills = std::env::var("CRASH_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let (mut dice, seed) = Dice::seeded();
    let (mut scene, server) = Scene::open().await;
    // After a kill without load, the account and domain that the admin commands created are still there.
    server.signal(Signal::KILL);
    server.end().await;
    for _ in 0..kills {
        let moment = if dice.between(0, 1) == 0 { Moment::Acknowledged } else { Moment::Arrived };
        // Some kills happen while the server delivers the backlog of the last kill, before it is ready.
        let soon = dice.between(0, 3) == 0;
        let left = dice.between(1, if soon { 5 } else { 380 });
        let (ledger, config) = (Arc::clone(&scene.ledger), scene.installation.config());
        let light = |pid| ledger.light(moment, left, pid, Signal::KILL);
        let status = match scene.installation.run(&config, light).await {
            Ok(server) => {
                scene.load.go();
                server.end().await
            }
            Err(ended) => ended.status,
        };
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "the server was not killed: {status}");
    }
    let server = scene.installation.start().await;
    scene.load.go();
    scene.ledger.more_acknowledged(20).await;
    let (_, figures) = scene.settle(server).await;
    println!("seed {seed}, kills {kills}: {figures}");
    assert!(figures.duplicates <= figures.cut, "{figures}");
    assert_eq!((figures.lost, figures.refused), (0, 0), "{figures}");
}

#[tokio::test]
async fn sigterm_under_load_exits_0_without_loss_or_duplicates() {
    const STOPS: u64 = 3;
    let (mut dice, seed) = Dice::seeded();
    let (mut scene, mut server) = Scene::open().await;
    for _ in 0..STOPS {
        scene.ledger.light(Moment::Acknowledged, dice.between(20, 150), server.pid(), Signal::TERM);
        scene.load.go();
        let status = server.end().await;
        assert_eq!(status.code(), Some(0), "{status}");
        server = scene.installation.start().await;
    }
    scene.load.go();
    scene.ledger.more_acknowledged(20).await;
    let (_, figures) = scene.settle(server).await;
    println!("seed {seed}, stops {STOPS}: {figures}");
    let Figures { lost, duplicates, unconfirmed, .. } = figures;
    assert_eq!((lost, duplicates, unconfirmed), (0, 0, 0), "{figures}");
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
    let ended = scene.installation.refusal(Some(&other)).await;
    assert!(!ended.status.success(), "{ended:?}");
    assert!(ended.said.contains("in use by another process"), "{}", ended.said);
    let (sound, answer) = scene.installation.ask(&["store", "check"]).await;
    assert!(sound && answer["sound"] == true, "the running server checks its store: {answer}");
    // The first server is not affected: it accepts mail and answers admin commands.
    scene.load.go();
    scene.ledger.more_acknowledged(20).await;
    scene.settle(server).await;
}

/// A server killed with mail in its queue. Delivery was paused, so that nothing was attempted. Returns the number of
/// acknowledged messages.
async fn killed_with_a_full_queue() -> (Scene, u64) {
    let (mut scene, server) = Scene::open().await;
    server.stop().await;
    let (relay, api) = (scene.installation.relay, scene.installation.api);
    scene.installation.configure("postrider.toml", relay, api, "paused = true\n");
    let server = scene.installation.start().await;
    scene.ledger.light(Moment::Acknowledged, 40, server.pid(), Signal::KILL);
    scene.load.go();
    server.end().await;
    scene.installation.configure("postrider.toml", relay, api, "");
    (scene, 40)
}

async fn refuses_to_call_it_sound(installation: &Installation) {
    let (sound, answer) = installation.ask(&["store", "check"]).await;
    assert!(!sound && answer["sound"] == false && answer["faults"][0]["fault"].is_string(), "{answer}");
}

/// Asserts that the server refuses to start, names the damaged file, and changes no byte of the log.
async fn is_refused(installation: &mut Installation, damaged: &std::path::Path) {
    let log_of = |installation: &Installation| {
        let mut found = directory::contents(&installation.data());
        // redb sets its dirty flag on open; the later restart shows that its contents are intact.
        found.retain(|path, _| path.extension().is_none_or(|ending| ending != "redb"));
        found
    };
    let before = log_of(installation);
    let ended = installation.refusal(None).await;
    assert!(!ended.status.success() && ended.status.code().is_some(), "{ended:?}");
    let named = damaged.file_name().unwrap().to_str().unwrap();
    assert!(ended.said.contains(named) && ended.said.contains("acknowledged data is damaged"), "{}", ended.said);
    let after = log_of(installation);
    assert!(before == after, "the directory was modified: {:?} and {:?}", before.keys(), after.keys());
}

#[tokio::test]
async fn a_corrupt_group_in_the_log_is_refused_and_not_modified() {
    let (mut scene, _) = killed_with_a_full_queue().await;
    let log = directory::segments(&scene.installation.data()).pop().expect("a segment");
    // The last group but one: the group after it proves that it was once complete.
    let groups = directory::groups(&log);
    let middle = groups[groups.len() - 2];
    directory::garble(&log, middle, 100);
    is_refused(&mut scene.installation, &log).await;
    refuses_to_call_it_sound(&scene.installation).await;
    // After the bytes are restored, all messages are there.
    directory::garble(&log, middle, 100);
    let server = scene.installation.start().await;
    scene.load.go();
    scene.ledger.more_acknowledged(1).await;
    let (_, figures) = scene.settle(server).await;
    assert!(figures.acknowledged > 40, "{figures}");
}

#[tokio::test]
async fn a_log_truncated_behind_its_checkpoint_is_refused_and_not_modified() {
    let (mut scene, _) = killed_with_a_full_queue().await;
    let (relay, api) = (scene.installation.relay, scene.installation.api);
    scene.installation.configure("postrider.toml", relay, api, "paused = true\n");
    // A clean stop writes a checkpoint: nothing is replayed afterwards, and the bodies stay in the log.
    let server = scene.installation.start().await;
    let queue = scene.installation.admin(&["queue", "list"]).await;
    assert!(queue["tasks"].as_array().unwrap().len() >= 40, "{queue}");
    server.stop().await;
    let log = directory::segments(&scene.installation.data()).pop().expect("a segment");
    let whole = std::fs::read(&log).unwrap();
    directory::cut(&log, directory::used_bytes(&log) / 2);
    refuses_to_call_it_sound(&scene.installation).await;
    is_refused(&mut scene.installation, &log).await;
    std::fs::write(&log, whole).unwrap();
    scene.installation.configure("postrider.toml", relay, api, "");
    let server = scene.installation.start().await;
    scene.settle(server).await;
}
