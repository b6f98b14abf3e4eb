//! Runs the tests of `suite/` on PostgreSQL, and tests of that engine only: it recovers from an outage, determines the
//! result of a commit whose answer was lost, and refuses a database that is not its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod database;
mod suite;

use parking_lot::Mutex;

use database::Server;
use futures_util::future::join_all;
use store::engine::copy::{CopyError, CopyProgress, StoreLocation, copy};
use store::engine::{
    Batch, CommitError, OpenError, PostgresOptions, ReadError, RedbOptions, ScanOrder, Store, StoreState,
};
use store::key::prefix_range;
use suite::{Subject, k};

struct Postgres {
    server: Server,
    current: Mutex<String>,
    lanes: usize,
}

impl Postgres {
    fn database(&self) -> PostgresOptions {
        PostgresOptions { write_connections: self.lanes, ..PostgresOptions::new(self.current.lock().clone(), "test") }
    }
}

impl Subject for Postgres {
    async fn fresh(&self) -> Store {
        *self.current.lock() = self.server.database();
        Store::connect(&self.database()).await.unwrap()
    }

    async fn again(&self, store: Store) -> Store {
        store.close().await;
        Store::connect(&self.database()).await.unwrap()
    }
}

#[test]
fn postgres_engine_passes_the_suite() {
    // One write connection, so that concurrent batches apply in submission order, as in the model.
    suite::run(&Postgres { server: Server::start(&[]), current: Mutex::default(), lanes: 1 }, 24);
}

/// Several nodes with several write connections: every task increments every counter by read and check.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_do_not_overwrite_each_other() {
    let server = Server::start(&[]);
    let database = PostgresOptions { write_connections: 3, ..PostgresOptions::new(server.database(), "test") };
    let nodes = join_all((0..3).map(|_| Store::connect(&database))).await;
    let nodes: Vec<Store> = nodes.into_iter().map(Result::unwrap).collect();
    let raise = async |store: &Store, n: u8| {
        for _ in 0..20 {
            loop {
                let key = k(&[7, n % 4]);
                let before = store.get(&key).await.unwrap();
                let count: u32 =
                    before.as_deref().map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap());
                let mut batch = Batch::progress();
                batch.check(key.clone(), before).put(key, (count + 1).to_string());
                // Additional rows, so that transactions also wait for each other's locks.
                batch.put(k(&[8, n]), vec![n]).put(k(&[8, 255 - n]), vec![n]);
                match store.commit(batch).await {
                    Ok(()) => break,
                    Err(CommitError::Conflict { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    join_all(nodes.iter().flat_map(|store| (0..8u8).map(move |n| (store, n))).map(|(store, n)| raise(store, n))).await;
    let counts = nodes[0].scan(prefix_range(&[7]), ScanOrder::Ascending, 9).await.unwrap();
    let sum: u32 = counts.iter().map(|(_, v)| std::str::from_utf8(v).unwrap().parse::<u32>().unwrap()).sum();
    assert_eq!(sum, 3 * 8 * 20);
    // A key that must be absent is created by exactly one.
    for round in 0..30u8 {
        let take = nodes.iter().map(|store| {
            let mut batch = Batch::intake();
            batch.check(k(&[9, round]), None).put(k(&[9, round]), vec![1]);
            store.commit(batch)
        });
        let taken = join_all(take).await;
        assert_eq!(taken.iter().filter(|result| result.is_ok()).count(), 1, "{taken:?}");
    }
    for store in nodes {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_reconnects_after_an_outage() {
    let mut server = Server::start(&["fsync=on"]);
    let store = Store::connect(&PostgresOptions::new(server.database(), "test")).await.unwrap();
    let put = |n: u8, mut batch: Batch| {
        batch.put(k(&[1, n]), vec![n]).put_body(k(&[1, n]), vec![n; 100]);
        batch
    };
    store.commit(put(0, Batch::intake())).await.unwrap();
    server.crash();
    // Intake is refused after a short wait; progress waits, and occupies all write connections.
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (store, batch) = (store.clone(), put(1, Batch::progress()));
            tokio::spawn(async move { store.commit(batch).await })
        })
        .collect();
    for _ in 0..3 {
        assert!(matches!(store.commit(put(2, Batch::intake())).await, Err(CommitError::Away(_))));
    }
    assert!(matches!(store.get(&k(&[1, 0])).await, Err(ReadError::Away(_))));
    assert!(matches!(store.health().state, StoreState::Away(_)));
    server.run();
    for waited in join_all(waiting).await {
        waited.unwrap().unwrap();
    }
    assert_eq!(store.health().state, StoreState::Healthy);
    let rows = store.scan(prefix_range(&[1]), ScanOrder::Ascending, 9).await.unwrap();
    assert_eq!(rows.iter().map(|(key, _)| key[1]).collect::<Vec<_>>(), [0, 1], "a refused batch is not stored");
    store.close().await;
}

/// Connections are cut repeatedly under load. What was reported as stored is there, what was reported as refused is
/// not, and nothing is written twice.
#[tokio::test(flavor = "multi_thread")]
async fn results_are_correct_when_connections_break() {
    let server = Server::start(&[]);
    let store = Store::connect(&PostgresOptions::new(server.database(), "test")).await.unwrap();
    let writers = (0..16u8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut results = Vec::new();
            for n in 0..60u8 {
                // Checked to be absent: a group that was stored and is retried would conflict.
                let key = k(&[1, writer, n]);
                let mut batch = Batch::progress();
                batch.check(key.clone(), None).put(key.clone(), vec![n]).put_body(key.clone(), vec![n; 1000]);
                results.push((key, store.commit(batch).await));
            }
            results
        })
    });
    let writers: Vec<_> = writers.collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'postrider'";
        server.sql("postgres", cut);
        tokio::task::yield_now().await;
    }
    for writer in join_all(writers).await {
        for (key, result) in writer.unwrap() {
            result.unwrap_or_else(|error| panic!("{key:?}: {error}"));
            assert!(store.get(&key).await.unwrap().is_some());
            assert!(store.body(&key).await.unwrap().is_some());
        }
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_database_is_reported_and_not_modified() {
    let server = Server::start(&[]);
    let url = server.database();
    Store::connect(&PostgresOptions::new(&*url, "one")).await.unwrap().close().await;
    let refused = async |url: &str, cluster: &str| {
        let error = Store::connect(&PostgresOptions::new(url, cluster)).await.unwrap_err();
        (error.to_string(), error)
    };
    let (text, error) = refused(&url, "two").await;
    assert!(matches!(error, OpenError::OtherCluster { .. }) && text.contains("`one`"), "{text}");
    server.sql("test0", "UPDATE postrider_installation SET value = '9' WHERE name = 'format'");
    let (text, error) = refused(&url, "one").await;
    assert!(matches!(error, OpenError::NewerDatabase { .. }) && text.contains("format 9"), "{text}");

    let (text, error) = refused(&server.url("nobody"), "one").await;
    assert!(text.contains("CREATE DATABASE") && !error.is_away(), "{text}");
    let (text, error) = refused("postgres://postgres@127.0.0.1:1/x", "one").await;
    assert!(text.contains("127.0.0.1:1/x") && text.contains("is it running") && error.is_away(), "{text}");

    server.sql("postgres", "CREATE ROLE alice LOGIN PASSWORD 'geheim'");
    std::fs::write(server.data().join("pg_hba.conf"), "local all postgres trust\nhost all all all scram-sha-256\n")
        .unwrap();
    server.sql("postgres", "SELECT pg_reload_conf()");
    let wrong = format!("postgres://alice:wrong@{}/test0", server.address());
    let mut text = refused(&wrong, "one").await.0;
    // The server reloads its file with a delay.
    while !text.contains("password") {
        text = refused(&wrong, "one").await.0;
    }
    assert!(text.contains("pg_hba.conf") && !text.contains("wrong"), "{text}");
    let empty = server.database();
    let name = empty.rsplit('/').next().unwrap();
    let (text, _) = refused(&format!("postgres://alice:geheim@{}/{name}", server.address()), "one").await;
    assert!(text.contains("must own its schema"), "{text}");

    server.sql("postgres", &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let (text, _) = refused(&empty, "one").await;
    assert!(text.contains("read-only replica"), "{text}");
    server.sql("postgres", &format!("ALTER DATABASE {name} RESET default_transaction_read_only"));
    let tables = server.sql(name, "SELECT count(*) FROM pg_class WHERE relname LIKE 'postrider%'");
    assert_eq!(tables, "0", "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_to_an_existing_store_creates_none() {
    let server = Server::start(&[]);
    let database = PostgresOptions::new(server.database(), "test");
    assert!(Store::connect_existing(&database).await.unwrap().is_none());
    let tables = server.sql("test0", "SELECT count(*) FROM pg_class WHERE relname LIKE 'postrider%'");
    assert_eq!(tables, "0", "nothing was written");

    let store = Store::connect(&database).await.unwrap();
    let mut batch = Batch::intake();
    batch.put(k(&[1]), vec![1]);
    store.commit(batch).await.unwrap();
    store.close().await;
    let store = Store::connect_existing(&database).await.unwrap().unwrap();
    assert_eq!(store.verify().await.unwrap().rows, 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_restores_into_a_directory() {
    let server = Server::start(&[]);
    let store = Store::connect(&PostgresOptions::new(server.database(), "test")).await.unwrap();
    for n in 0..200u8 {
        let mut batch = Batch::intake();
        batch.put(k(&[1, n]), vec![n; 300]).put_body(k(&[1, n]), vec![n; 2000]);
        store.commit(batch).await.unwrap();
    }
    let report = store.verify().await.unwrap();
    assert_eq!((report.rows, report.bodies, report.body_bytes), (200, 200, 400_000));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    let progress = store.backup(&file, |_| {}).await.unwrap();
    assert_eq!((progress.rows, progress.bodies), (200, 200));
    let options = RedbOptions::new(directory.path().join("store"));
    Store::restore(&file, &options, |_| {}).unwrap();
    assert!(Store::check(&options).unwrap().is_sound());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_copied_into_a_database_and_back() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let options = |name: &str| RedbOptions::new(directory.path().join(name));
    let store = Store::open(&options("a")).unwrap();
    for n in 0..250u8 {
        let mut batch = Batch::intake();
        batch.put(k(&[1, n]), vec![n; 3000]).put_body(k(&[2, n]), vec![n; 60_000]);
        store.commit(batch).await.unwrap();
    }
    let from = StoreLocation::Directory(options("a"));
    let database = PostgresOptions::new(server.database(), "test");
    let into = StoreLocation::Database(database.clone());
    assert!(matches!(copy(&from, &into, |_| {}).await, Err(CopyError::Open(OpenError::InUse { .. }))));
    store.close().await;

    // Interrupted halfway: no server can open the target, and the next copy continues.
    let cut = tokio::spawn({
        let (from, into) = (from.clone(), into.clone());
        async move {
            copy(&from, &into, |step| {
                if matches!(step, CopyProgress::Copied(progress) if progress.bodies > 100) {
                    panic!()
                }
            })
            .await
        }
    });
    assert!(cut.await.unwrap().is_err());
    let half = Store::connect(&database).await;
    assert!(matches!(&half, Err(OpenError::HalfCopied(_))), "{half:?}");
    let copied_bodies: u64 = server.sql("test0", "SELECT count(*) FROM postrider_bodies").parse().unwrap();
    assert!((1..250).contains(&copied_bodies), "{copied_bodies}");
    let (progress, sum) = copy(&from, &into, |_| {}).await.unwrap();
    assert_eq!((progress.rows, progress.bodies), (250, 250));
    let again = copy(&from, &into, |_| {}).await;
    assert!(again.is_err_and(|error| error.to_string().contains("already contains a store")));

    let back = StoreLocation::Directory(options("b"));
    assert_eq!(copy(&into, &back, |_| {}).await.unwrap(), (progress, sum));
    assert!(Store::check(&options("b")).unwrap().is_sound());
    assert!(matches!(copy(&into, &back, |_| {}).await, Err(CopyError::NotEmpty(_))));
    let moved = Store::open(&options("b")).unwrap();
    assert_eq!(moved.body(&k(&[2, 77])).await.unwrap().unwrap(), vec![77; 60_000]);
    moved.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_certificate_is_verified() {
    let mut server = Server::start(&[]);
    server.database();
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let own_root = server.private_file("server.crt", &certificate.cert.pem());
    server.private_file("server.key", &certificate.signing_key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = server.private_file("other.crt", &other.cert.pem());
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop();
    server.run();
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    let connect = async |host: &str, roots: &std::path::Path| {
        let url =
            format!("postgres://postgres@{host}:{port}/test0?sslmode=verify-full&sslrootcert={}", roots.display());
        Store::connect(&PostgresOptions::new(url, "test")).await
    };
    let store = connect("localhost", &own_root).await.unwrap();
    let secured = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE application_name = 'postrider' AND NOT ssl";
    assert_eq!(server.sql("postgres", secured), "0", "every connection is encrypted");
    store.close().await;
    for (host, roots) in [("localhost", &other), ("127.0.0.1", &own_root)] {
        let refused = connect(host, roots).await.unwrap_err();
        assert!(refused.to_string().contains("certificate") && !refused.is_away(), "{refused}");
    }
    server.sql("postgres", "ALTER SYSTEM SET ssl = off");
    server.stop();
    server.run();
    let refused = connect("localhost", &own_root).await.unwrap_err();
    assert!(!refused.is_away(), "no connection is unencrypted: {refused}");
}

/// Large bodies that arrive concurrently must not share a transaction that exceeds limits: the server accepts no
/// statement of more than 1 GiB, and the client can encode none of more than 2 GiB.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes two gigabytes; lane.rs tests the bound itself"]
async fn concurrent_large_bodies_are_all_stored() {
    const COUNT: u8 = 110;
    let server = Server::start(&[]);
    let store =
        Store::connect(&PostgresOptions { write_connections: 1, ..PostgresOptions::new(server.database(), "test") })
            .await
            .unwrap();
    let body = bytes::Bytes::from(vec![b'x'; 20 << 20]);
    let commits = (0..COUNT).map(|n| {
        let mut batch = Batch::intake();
        batch.put(k(&[6, n]), vec![n]).put_body(k(&[6, n]), body.clone());
        store.commit(batch)
    });
    for result in join_all(commits).await {
        result.unwrap();
    }
    let report = store.verify().await.unwrap();
    assert_eq!((report.rows, report.bodies), (COUNT.into(), COUNT.into()));
    store.close().await;
}

/// A commit that waits for a lost standby is stored once the standby is back, so it must not be reported as refused.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "waits for the 45 s after which an outcome counts as unknown"]
async fn the_first_commit_of_a_connection_is_not_reported_as_lost_while_it_waits() {
    let server = Server::start(&[]);
    let store =
        Store::connect(&PostgresOptions { write_connections: 1, ..PostgresOptions::new(server.database(), "test") })
            .await
            .unwrap();
    server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let mut batch = Batch::intake();
    batch.put(k(&[6, 1]), vec![1]);
    let answer = store.commit(batch).await;
    server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = ''");
    server.sql("postgres", "SELECT pg_reload_conf()");
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    store.close().await;
}
