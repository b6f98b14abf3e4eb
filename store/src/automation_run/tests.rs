//! Tests of runs and their indexes.

use model::automation::job::{AutomationJob, AutomationJobKind};
use model::automation::run::{NextStep, RunStart, RunWait};
use model::automation::{Automation, AutomationStatus, RunCounts, parse, person_key};
use model::id::EventId;
use serde_json::json;

use super::*;
use crate::automation_run::due_work::DueWork;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn automation() -> Automation {
    Automation {
        id: AutomationId::new(at(0), 1),
        account: AccountId::new(at(0), 1),
        name: "Trial".to_owned(),
        status: AutomationStatus::Active,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
        activated_at: None,
    }
}

fn run(number: u128, user_id: &str, email: &str) -> AutomationRun {
    let steps = json!([{"type": "delay", "duration": "1d"}, {"type": "delay", "duration": "1d"}]);
    let definition = parse::parse_stored(&json!({"trigger": {"event": "a"}, "steps": steps})).unwrap();
    let beginning = RunStart {
        id: RunId::new(at(i64::try_from(number).unwrap()), number),
        partition: 3,
        source: "ae_x".to_owned(),
        event_name: "a",
        user_id: Some(user_id),
        email: Some(email),
        lineage: Vec::new(),
        at: at(10),
    };
    AutomationRun::begin(&automation(), &definition, beginning).0
}

async fn moved(store: &Store, run: &AutomationRun, change: impl FnOnce(&mut AutomationRun)) -> AutomationRun {
    let found = get(store, run_key(run)).await.unwrap().unwrap();
    let mut after = found.run.clone();
    change(&mut after);
    let mut batch = Batch::progress();
    update(&mut batch, &found, &after);
    store.commit(batch.clone()).await.unwrap();
    assert!(store.commit(batch).await.is_err(), "moved twice");
    after
}

async fn counts(store: &Store) -> [u64; 5] {
    let Automation { account, id, .. } = automation();
    let RunCounts { running, waiting, completed, failed, cancelled } =
        counts::read(store, account, id).await.unwrap().counts;
    [running, waiting, completed, failed, cancelled]
}

#[tokio::test]
async fn a_run_is_found_by_every_index() {
    let store = Store::memory();
    let (older, newer) = (run(1, "7", "a@x.example"), run(2, "8", "A@x.example"));
    let mut batch = Batch::intake();
    for run in [&older, &newer] {
        create(&mut batch, run, b"sealed".to_vec());
    }
    store.commit(batch).await.unwrap();
    let (account, automation) = (older.account, older.automation);
    assert_eq!(counts(&store).await, [2, 0, 0, 0, 0]);
    let waiting =
        |persons| RunWait { event: Some("b".to_owned()), persons, since: at(11), until: at(50), unread: false };
    let older = moved(&store, &older, |run| run.wait_for(waiting(vec![person_key::user_key("7")]), at(11))).await;
    assert_eq!(counts(&store).await, [1, 1, 0, 0, 0]);
    let found = wait::list_waiting_for(&store, account, "b", person_key::user_key("7"), None, 9).await.unwrap();
    assert_eq!(found.iter().map(|(_, about)| *about).collect::<Vec<_>>(), [run_key(&older)]);
    let next_page =
        wait::list_waiting_for(&store, account, "b", person_key::user_key("7"), Some(&found[0].0), 9).await.unwrap();
    assert!(next_page.is_empty());

    let first = due_work::list_due(&store, 3, at(20), 9).await.unwrap();
    assert_eq!((first.due, first.later), (vec![(at(10), DueWork::Step(run_key(&newer)))], Some(at(50))));
    let by = |filter: RunFilter| {
        let store = &store;
        async move {
            list(store, account, automation, &filter, None, 9)
                .await
                .unwrap()
                .0
                .iter()
                .map(|run| run.id)
                .collect::<Vec<_>>()
        }
    };
    let email = Some("a@X.example".to_owned());
    assert_eq!(by(RunFilter::default()).await, [newer.id, older.id]);
    assert_eq!(by(RunFilter { email: email.clone(), ..RunFilter::default() }).await, [newer.id, older.id]);
    assert_eq!(by(RunFilter { user_id: Some("7".to_owned()), ..RunFilter::default() }).await, [older.id]);
    assert_eq!(by(RunFilter { statuses: vec![RunStatus::Waiting], ..RunFilter::default() }).await, [older.id]);
    assert_eq!(by(RunFilter { statuses: vec![RunStatus::Queued], email, ..RunFilter::default() }).await, [newer.id]);
    assert_eq!(
        run_indexes::list_active(&store, account, automation, person_key::email_key("a@x.example"), 9).await.unwrap(),
        [older.id, newer.id]
    );

    // The run is held, continues, and ends.
    let older = moved(&store, &older, AutomationRun::hold).await;
    assert_eq!(run_indexes::list_held(&store, account, automation, 9).await.unwrap(), [older.id]);
    let older = moved(&store, &older, |run| run.release(at(12))).await;
    assert!(run_indexes::list_held(&store, account, automation, 9).await.unwrap().is_empty());
    let older = moved(&store, &older, |run| drop(run.complete_step(json!({}), NextStep::Stop(None), at(50)))).await;
    assert_eq!(counts(&store).await, [1, 0, 1, 0, 0]);
    assert!(get_with_sealed(&store, run_key(&older)).await.unwrap().unwrap().1.is_none(), "the sealed data is deleted");
    assert!(wait::list_waiting_for(&store, account, "b", person_key::user_key("7"), None, 9).await.unwrap().is_empty());
    assert_eq!(
        run_indexes::list_active(&store, account, automation, person_key::email_key("a@x.example"), 9).await.unwrap(),
        [newer.id]
    );

    // Folding does not change the counts. Then the runs are deleted.
    let counted = counts::read(&store, account, automation).await.unwrap();
    assert_eq!(counted.changes(), 4);
    let mut batch = Batch::progress();
    counted.fold(&mut batch, account, automation);
    store.commit(batch.clone()).await.unwrap();
    assert!(store.commit(batch).await.is_err(), "folded twice");
    assert_eq!(counts(&store).await, [1, 0, 1, 0, 0]);
    let mut batch = Batch::progress();
    for found in list_oldest(&store, account, automation, None, 9).await.unwrap() {
        delete(&mut batch, &found);
    }
    store.commit(batch).await.unwrap();
    assert!(due_work::list_due(&store, 3, at(99), 9).await.unwrap().due.is_empty());
    assert!(by(RunFilter::default()).await.is_empty());
}

#[tokio::test]
async fn a_run_can_be_created_waiting_or_ended() {
    let store = Store::memory();
    let (mut waiting, mut ended) = (run(1, "7", "a@x.example"), run(2, "7", "a@x.example"));
    let person = person_key::user_key("7");
    let wait =
        RunWait { event: Some("b".to_owned()), persons: vec![person], since: at(10), until: at(50), unread: false };
    waiting.wait_for(wait, at(10));
    ended.complete_step(json!({}), NextStep::Stop(None), at(10));
    let mut batch = Batch::intake();
    for run in [&waiting, &ended] {
        create(&mut batch, run, b"sealed".to_vec());
    }
    store.commit(batch).await.unwrap();
    assert_eq!(counts(&store).await, [0, 1, 1, 0, 0]);
    let (account, automation) = (waiting.account, waiting.automation);
    let found = wait::list_waiting_for(&store, account, "b", person, None, 9).await.unwrap();
    assert_eq!(found.iter().map(|(_, about)| *about).collect::<Vec<_>>(), [run_key(&waiting)]);
    assert_eq!(run_indexes::list_active(&store, account, automation, person, 9).await.unwrap(), [waiting.id]);
    let due = due_work::list_due(&store, 3, at(20), 9).await.unwrap();
    assert_eq!((due.due, due.later), (Vec::new(), Some(at(50))));
    let (_, sealed) = get_with_sealed(&store, run_key(&ended)).await.unwrap().unwrap();
    assert!(sealed.is_none(), "an ended run has no sealed data");
}

#[tokio::test]
async fn concurrent_last_runs_of_a_person_conflict() {
    let store = Store::memory();
    let (older, person) = (run(1, "7", "a@x.example"), person_key::user_key("7"));
    let (account, automation) = (older.account, older.automation);
    let last = run_indexes::find_last(&store, account, automation, person).await.unwrap();
    assert_eq!(last.run, None);
    let mut batch = Batch::intake();
    run_indexes::put_last(&mut batch, &older, person, &last);
    store.commit(batch.clone()).await.unwrap();
    assert!(store.commit(batch).await.is_err());
    assert_eq!(run_indexes::find_last(&store, account, automation, person).await.unwrap().run, Some(older.id));
}

#[tokio::test]
async fn a_job_of_a_newer_release_waits_and_the_others_do_not() {
    let store = Store::memory();
    let mut batch = jobs_of_newer_release(0..1, 10);
    due_work::put_job(&mut batch, &job(1, 10));
    store.commit(batch).await.unwrap();
    let listed = due_work::list_oldest_and_newest_due(&store, 3, at(99), 9, None).await.unwrap();
    assert_eq!(jobs_in(&listed), [job(1, 10)]);
    assert_eq!(store.scan(key(Space::AutomationDue).range(), ScanOrder::Ascending, 9).await.unwrap().len(), 2);
}

fn job(n: u128, due: i64) -> AutomationJob {
    let run = run(1, "7", "a@x.example");
    let id = EventId::new(at(0), n);
    let work = AutomationJobKind::Hear { subject: run.id.into(), event: id };
    AutomationJob { id, account: run.account, partition: 3, due: at(due), work }
}

/// Writes jobs that this release cannot decode.
fn jobs_of_newer_release(numbers: std::ops::Range<u128>, due: i64) -> Batch {
    let mut batch = Batch::progress();
    numbers.for_each(|n| due_work::put_job(&mut batch, &job(n, due)));
    for row in &mut batch.rows {
        let text = String::from_utf8(row.value.take().unwrap().to_vec()).unwrap();
        row.value = Some(text.replace(r#""hear""#, r#""think""#).into_bytes().into());
    }
    batch
}

fn jobs_in(listed: &due_work::DueWorkBatch) -> Vec<AutomationJob> {
    let jobs = listed.due.iter().map(|(_, work)| match work {
        DueWork::Job(found) => found.job.clone(),
        other => panic!("{other:?}"),
    });
    jobs.collect()
}

#[tokio::test]
async fn due_work_behind_jobs_of_a_newer_release_is_found() {
    let store = Store::memory();
    let mut batch = jobs_of_newer_release(0..20, 10);
    (20..23).for_each(|n| due_work::put_job(&mut batch, &job(n, 11)));
    batch.append(jobs_of_newer_release(30..50, 12));
    store.commit(batch).await.unwrap();
    let listed = due_work::list_oldest_and_newest_due(&store, 3, at(99), 4, None).await.unwrap();
    assert_eq!(jobs_in(&listed), [20, 21, 22].map(|n| job(n, 11)));
    assert_eq!((listed.has_more, listed.read_until, listed.later), (false, None, None));
    let first = due_work::list_due(&store, 3, at(99), 1).await.unwrap();
    assert_eq!((jobs_in(&first), first.has_more), (vec![job(20, 11)], true));
    let none = due_work::list_due(&store, 3, at(10), 4).await.unwrap();
    assert_eq!((none.due, none.has_more, none.later), (vec![], false, Some(at(11))));
}

#[tokio::test]
async fn a_scan_of_many_jobs_of_a_newer_release_continues() {
    let store = Store::memory();
    store.commit(jobs_of_newer_release(0..2_500, 10)).await.unwrap();
    let mut batch = jobs_of_newer_release(3_000..3_010, 12);
    due_work::put_job(&mut batch, &job(2_900, 11));
    store.commit(batch).await.unwrap();
    let first = due_work::list_oldest_and_newest_due(&store, 3, at(99), 4, None).await.unwrap();
    assert_eq!((first.due, first.has_more), (vec![], false));
    let read_until = first.read_until.unwrap();
    let rest = due_work::list_oldest_and_newest_due(&store, 3, at(99), 4, Some(&read_until)).await.unwrap();
    assert_eq!(jobs_in(&rest), [job(2_900, 11)]);
    assert_eq!((rest.has_more, rest.read_until), (false, None));
}

#[tokio::test]
async fn a_postponed_step_is_due_later() {
    let store = Store::memory();
    let (run, mut batch) = (run(1, "7", "a@x.example"), Batch::progress());
    due_work::put_step(&mut batch, &run, at(10));
    store.commit(batch).await.unwrap();
    let mut batch = Batch::progress();
    due_work::postpone_step(&mut batch, run.partition, at(10), run_key(&run), at(20));
    store.commit(batch).await.unwrap();
    let listed = due_work::list_due(&store, run.partition, at(15), 9).await.unwrap();
    assert_eq!((listed.due, listed.later), (vec![], Some(at(20))));
    let listed = due_work::list_due(&store, run.partition, at(20), 9).await.unwrap();
    assert_eq!(listed.due, [(at(20), DueWork::Step(run_key(&run)))]);
}

#[tokio::test]
async fn a_postponed_due_key_is_removed() {
    let store = Store::memory();
    let (run, mut batch) = (run(1, "7", "a@x.example"), Batch::intake());
    create(&mut batch, &run, b"sealed".to_vec());
    store.commit(batch).await.unwrap();
    let postpone = async |from: i64, until: i64| {
        let mut batch = Batch::progress();
        due_work::postpone_step(&mut batch, run.partition, at(from), run_key(&run), at(until));
        store.commit(batch).await.unwrap();
    };
    let due_keys = async || -> Vec<Timestamp> {
        let listed = due_work::list_due(&store, run.partition, at(999), 9).await.unwrap();
        listed.due.into_iter().map(|(due, _)| due).collect()
    };
    let found_by = async |due: i64| {
        let mut found = get(&store, run_key(&run)).await.unwrap().unwrap();
        found.set_due_key(at(due));
        found
    };
    assert!(!found_by(10).await.has_other_due_key());
    postpone(10, 20).await;
    // A step found by the postponed key advances into a delay.
    let found = found_by(20).await;
    let (mut after, mut batch) = (found.run.clone(), Batch::progress());
    after.defer_step(at(50), at(20));
    update(&mut batch, &found, &after);
    store.commit(batch).await.unwrap();
    assert_eq!(due_keys().await, [at(50)]);

    // A newer node advances the run before the postponed key is due.
    postpone(50, 60).await;
    moved(&store, &run, |run| run.defer_step(at(90), at(55))).await;
    assert_eq!(due_keys().await, [at(60), at(90)]);
    let found = found_by(60).await;
    assert!(found.has_other_due_key());
    let mut batch = Batch::progress();
    found.remove_other_due_key(&mut batch);
    store.commit(batch.clone()).await.unwrap();
    assert_eq!(due_keys().await, [at(90)]);
    moved(&store, &run, |run| run.defer_step(at(95), at(90))).await;
    assert!(store.commit(batch).await.is_err(), "the run has changed");
}
