//! Payouts with more lines than a commit, and payout files.

use affiliate::context::no_extension;
use affiliate::payouts::files::FileSelection;
use model::affiliate::money::Currency;
use model::affiliate::payout::{PayoutFileFormat, PayoutRunStatus, PayoutStatus};
use model::affiliate::program::PayoutMethod;

use super::setting::payable;

#[tokio::test]
pub(crate) async fn a_partner_with_very_many_lines_is_paid_in_one_payout() {
    let world = payable().await;
    world.bounties(world.ada, 950).await;
    world.bounties(world.bob, 3).await;
    let sum: i64 = (0..950).map(|n| 100 + n).sum();
    let run = world.draft().await;
    let payout = world.payout_of(world.ada, PayoutStatus::Draft).await.payout;
    assert_eq!((payout.lines, payout.amount, run.payouts), (950, sum, 2));
    assert_eq!(world.event_kinds(payout.id).await, ["payout.created"]);
    world.check_ledger().await;
    world.ledger.cancel_run(world.account, run.id, None, &no_extension).await.unwrap();
    world.check_ledger().await;
    let run = world.draft().await;
    world.approve(&run).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    world.mark_paid(payout.id, "r").await.unwrap();
    assert_eq!(world.lines().await.iter().filter(|line| line.status.word() == "paid").count(), 950);
    world.check_ledger().await;
    let bob = world.payout_of(world.bob, PayoutStatus::Processing).await.payout;
    world.fail(bob.id, "why").await.unwrap();
    assert_eq!(world.run(&run).await.status, PayoutRunStatus::Completed);
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn a_large_payout_that_fails_releases_all_its_lines() {
    let world = payable().await;
    world.bounties(world.ada, 450).await;
    let run = world.draft().await;
    world.approve(&run).await;
    let payout = world.payout_of(world.ada, PayoutStatus::Processing).await.payout;
    world.fail(payout.id, "why").await.unwrap();
    assert!(world.lines().await.iter().all(|line| line.status.payout().is_none()));
    world.check_ledger().await;
    assert_eq!(world.draft().await.totals, run.totals);
    world.check_ledger().await;
}

#[tokio::test]
pub(crate) async fn files_are_cut_into_parts() {
    let world = payable().await;
    world.bounties(world.ada, 2).await;
    world.bounties(world.bob, 2).await;
    world.pay_by(world.bob, PayoutMethod::Bank, "IBAN\n=1+1").await;
    let run = world.draft().await;
    let all = FileSelection::default();
    assert!(world.ledger.list_payout_files(world.account, run.id, &all).await.is_err(), "it is not approved");
    world.approve(&run).await;
    let files = world.ledger.list_payout_files(world.account, run.id, &all).await.unwrap();
    let outline: Vec<_> = files.iter().map(|file| (file.method, file.format, file.rows)).collect();
    let wanted =
        [(PayoutMethod::Paypal, PayoutFileFormat::Paypal, 1), (PayoutMethod::Bank, PayoutFileFormat::Generic, 1)];
    assert_eq!(outline, wanted);
    let paypal = &files[0].content;
    assert!(paypal.starts_with("email,amount,currency,id,note\r\nada@paypal.example,2.01,USD,pay_"), "{paypal}");
    let selection = |method, currency: Option<&str>, format| FileSelection {
        method,
        currency: currency.map(|code| code.parse::<Currency>().unwrap()),
        format,
    };
    let bank = Some(PayoutMethod::Bank);
    let file = async |selection: &FileSelection, part| {
        world.ledger.get_payout_file(world.account, run.id, selection, part).await
    };
    assert_eq!(file(&selection(bank, None, None), 1).await.unwrap(), files[1]);
    assert!(file(&all, 1).await.is_err(), "there are two kinds");
    assert!(file(&selection(bank, None, Some(PayoutFileFormat::Wise)), 1).await.is_err());
    assert!(file(&selection(bank, None, None), 2).await.is_err());
    let none = file(&selection(bank, Some("eur"), None), 1).await.unwrap();
    assert_eq!(none.rows, 0);
    // A failed payout is in no file, because the next run pays it.
    let payout = world.payout_of(world.bob, PayoutStatus::Processing).await.payout;
    world.fail(payout.id, "why").await.unwrap();
    assert_eq!(file(&selection(bank, None, None), 1).await.unwrap().rows, 0);
    world.check_ledger().await;
}
