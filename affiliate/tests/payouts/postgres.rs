//! The same stories on PostgreSQL: commits go over a connection there, conflicts are told by the database, and scans see
//! what others have committed meanwhile.

use std::rc::Rc;

use store::engine::PostgresOptions;

use super::database::Server;
use super::world::DATABASES;
use super::{compare, interplay, killed, large, life, methods, transfers};

/// Tells stories, each in a database of its own.
fn tell(stories: &[fn()]) {
    let server = Rc::new(Server::start(&[]));
    let make = Rc::clone(&server);
    DATABASES.set(Some(Box::new(move || PostgresOptions::new(make.database(), "test"))));
    stories.iter().for_each(|story| story());
    DATABASES.set(None);
}

#[test]
fn runs_live_and_die_alike_on_postgres() {
    tell(&[
        life::a_run_is_drafted_approved_and_paid,
        life::a_cancelled_run_leaves_nothing,
        life::who_cannot_be_paid_is_skipped,
        life::a_run_takes_what_was_earned_by_its_cutoff,
        life::the_processor_pays_its_own,
        compare::a_line_is_compared_a_day_before_it_is_earned,
        compare::a_line_waits_for_an_answer_but_not_for_ever,
        compare::a_draft_is_compared_before_it_is_approved,
        compare::where_there_is_no_answer_the_owner_sees_it,
        compare::a_draft_that_is_compared_can_be_cancelled,
        large::a_partner_with_very_many_lines_is_paid_in_one_payout,
        large::a_large_payout_that_fails_frees_all_its_lines,
        large::files_are_cut_into_parts,
        methods::payouts_by_a_method_that_is_allowed_no_more_leave_the_draft,
        methods::nobody_approves_what_is_allowed_no_more,
        methods::open_payouts_of_former_runs_hide_nobody_in_the_draft,
    ]);
}

#[test]
fn what_happens_meanwhile_comes_to_the_same_on_postgres() {
    tell(&[
        interplay::a_refund_takes_a_line_out_of_its_draft,
        interplay::a_draft_that_comes_to_too_little_is_dropped,
        interplay::an_inquiry_keeps_a_line_from_being_paid,
        interplay::what_is_approved_is_paid_whatever_happens,
        interplay::a_loss_is_taken_off_later_payouts,
        interplay::what_failed_returns_to_the_next_run_as_it_is_by_then,
        interplay::a_transfer_that_comes_back_is_a_failed_payout,
        interplay::an_account_that_takes_transfers_can_be_paid,
        interplay::an_account_that_takes_no_transfers_any_more_is_in_no_draft,
        interplay::several_at_once_come_to_one_end,
        transfers::a_transfer_is_made,
        transfers::what_is_not_answered_is_asked_again_with_the_same_key,
        transfers::what_was_never_asked_may_be_failed_by_hand,
        transfers::what_is_refused_for_good_has_failed,
        transfers::money_that_is_missing_is_waited_for,
        transfers::money_that_is_missing_for_long_fails_the_payout,
        transfers::a_key_that_is_forgotten_by_now_is_not_asked_with,
        transfers::a_transfer_that_came_back_before_it_was_heard_of_names_its_payout,
    ]);
}

#[test]
fn what_is_cut_off_is_gone_on_with_on_postgres() {
    // The others of these go the same ways, and take minutes.
    tell(&[killed::a_draft_is_gone_on_with, killed::a_cancelled_run_is_taken_apart]);
}
