//! The same tests on PostgreSQL: commits use a connection, the database detects conflicts, and scans see concurrent
//! commits.

use std::rc::Rc;

use store::engine::PostgresOptions;

use super::database::Server;
use super::world::DATABASES;
use super::{compare, interplay, killed, large, life, methods, transfers};

/// Runs tests, each in a new database.
fn run_on_postgres(stories: &[fn()]) {
    let server = Rc::new(Server::start(&[]));
    let make = Rc::clone(&server);
    DATABASES.set(Some(Box::new(move || PostgresOptions::new(make.database(), "test"))));
    stories.iter().for_each(|story| story());
    DATABASES.set(None);
}

#[test]
fn runs_behave_alike_on_postgres() {
    run_on_postgres(&[
        life::a_run_is_drafted_approved_and_paid,
        life::a_cancelled_run_releases_its_lines,
        life::commissions_in_an_unapproved_run_count_as_earned,
        life::partners_who_cannot_be_paid_are_skipped,
        life::a_run_contains_lines_earned_by_its_cutoff,
        life::payouts_by_transfer_cannot_be_marked_paid,
        compare::a_line_is_compared_a_day_before_it_is_earned,
        compare::a_line_waits_for_an_answer_at_most_a_day,
        compare::a_draft_is_compared_before_it_is_approved,
        compare::unanswered_charges_are_counted_in_the_run,
        compare::a_draft_can_be_cancelled_while_it_is_compared,
        large::a_partner_with_very_many_lines_is_paid_in_one_payout,
        large::a_large_payout_that_fails_releases_all_its_lines,
        large::files_are_cut_into_parts,
        methods::payouts_by_a_disallowed_method_leave_the_draft,
        methods::a_run_with_disallowed_methods_cannot_be_approved,
        methods::open_payouts_of_earlier_runs_do_not_hide_draft_payouts,
    ]);
}

#[test]
fn refunds_and_transfers_behave_alike_on_postgres() {
    run_on_postgres(&[
        interplay::a_refund_takes_a_line_out_of_its_draft,
        interplay::a_draft_payout_below_the_minimum_is_dropped,
        interplay::an_inquiry_keeps_a_line_from_being_paid,
        interplay::an_approved_payout_is_unaffected_by_later_refunds,
        interplay::with_offset_a_later_refund_is_netted_in_the_next_payouts,
        interplay::a_deduction_that_was_undone_is_paid_without_another_sale,
        interplay::a_failed_payout_pays_its_deduction_back,
        interplay::a_change_of_the_setting_applies_to_further_refunds,
        interplay::a_commission_paid_for_a_session_is_deducted_when_its_invoice_earns,
        interplay::a_dropped_payout_whose_deduction_exceeds_its_lines_is_skipped,
        interplay::lines_of_a_failed_payout_return_with_their_current_amounts,
        interplay::a_reversed_transfer_fails_its_payout,
        interplay::an_account_that_takes_transfers_can_be_paid,
        interplay::a_partner_whose_account_stops_taking_transfers_leaves_the_draft,
        interplay::concurrent_operations_have_one_consistent_result,
        transfers::a_transfer_is_made,
        transfers::an_unanswered_transfer_is_retried_with_the_same_key,
        transfers::a_transfer_never_sent_can_be_failed_by_hand,
        transfers::a_rejected_transfer_fails_the_payout,
        transfers::insufficient_funds_are_retried_daily_with_new_keys,
        transfers::lasting_insufficient_funds_fail_the_payout,
        transfers::a_transfer_with_an_old_key_is_looked_up_first,
        transfers::a_transfer_reversed_before_its_response_fails_its_payout,
    ]);
}

#[test]
fn interrupted_jobs_are_completed_on_postgres() {
    // The other tests of this file use the same code paths and would take minutes.
    run_on_postgres(&[killed::an_interrupted_draft_is_completed, killed::an_interrupted_cancellation_is_completed]);
}
