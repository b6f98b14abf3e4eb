//! Notices: what was done, and what needs attention.

use html::badge::Tone;
pub use html::notice::Notice;

/// The code of a form that came after the end of the session.
pub const SESSION_ENDED: &str = "session_ended";

/// The tone of a code's sentence.
pub fn done_tone(code: &str) -> Tone {
    if code == SESSION_ENDED { Tone::Warning } else { Tone::Good }
}

/// The sentence of a code in the query field `done`; `None` for unknown codes, which anybody can write into a link.
pub fn done_text(code: &str) -> Option<&'static str> {
    Some(match code {
        "access_ended" => "The app no longer has access.",
        "activated" => "It is now active.",
        "added" => "It was added.",
        "allowed" => "The referral is allowed.",
        "approved" => "It was approved.",
        "archived" => "It was archived.",
        "booked" => "The event was processed.",
        "cancelled" => "It was cancelled.",
        "changed" => "The change was saved.",
        "connected" => "The payment processor is connected.",
        "created" => "It was created.",
        "deleted" => "It was deleted.",
        "ended" => "The session was ended.",
        "imported" => "The import was started.",
        "invited" => "The invitation was sent.",
        "mailed" => "If the address has an account here, a sign-in link is on its way.",
        "marked_failed" => "The payout is marked as failed. Its commissions go to the next run.",
        "marked_paid" => "The payout is marked as paid.",
        "not_mailed" => "It was added. No email was sent: see the program's settings for the reason.",
        "paused" => "It is paused.",
        "published" => "The version is published.",
        "queued" => "It is being processed: the list shows it as soon as it is stored.",
        "reactivated" => "The partner is active again.",
        "referred_before" => "This person had already been referred: this is that referral, unchanged.",
        "reinstated" => "The commission is reinstated.",
        "rejected" => "It was rejected.",
        "replayed" => "It will be sent again.",
        "resumed" => "It continues.",
        "reversed" => "The commission is reversed.",
        "rolled_back" => "The earlier version has been published again.",
        "sent" => "The email was accepted.",
        SESSION_ENDED => "Your session has ended. Nothing was saved; sign in and send the form again.",
        "signed_out" => "You are signed out.",
        "suspended" => "The partner is suspended.",
        "tested" => "The test was sent.",
        "verified" => "The records were checked.",
        "went_live" => "The program is live.",
        _ => return None,
    })
}
