//! Hosts that hang up, stop responding, send malformed replies or reply out of sequence.

use queue::delivery::client::smtp::{
    ReplyParseError, SmtpConnection, SmtpFault, TlsSecurityLevel, TransactionPhase, TransactionVerdict,
};

use super::script::{Host, Script, envelope, hasty, shipment};

fn pipelined() -> Script {
    Script::offering(&["PIPELINING"]).expects(envelope(1) + "DATA\r\n")
}

fn flying() -> Script {
    Script::offering(&["PIPELINING", "CHUNKING"]).expects(envelope(1) + "BDAT 5 LAST\r\none\r\n")
}

async fn hasty_connection(host: &Host) -> SmtpConnection {
    hasty().connect(&host.target(TlsSecurityLevel::Off)).await.unwrap()
}

/// Delivers message 1 and returns the verdict and whether the connection is usable.
async fn outcome(script: Script) -> (TransactionVerdict, TransactionPhase, Option<SmtpFault>, bool) {
    let host = script.start().await;
    let mut connection = hasty_connection(&host).await;
    let delivery = connection.deliver(&shipment(1, "one"), None).await;
    let outcome = (delivery.verdict, delivery.phase, delivery.fault, connection.is_usable());
    drop(connection);
    host.done().await;
    outcome
}

#[tokio::test]
async fn hung_up() {
    use {SmtpFault::Closed, TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    assert_eq!(outcome(pipelined()).await, (ConnectionLost, Mail, Some(Closed), false));
    assert_eq!(outcome(pipelined().replies("250 a\r\n")).await, (ConnectionLost, Rcpt, Some(Closed), false));
    assert_eq!(outcome(pipelined().replies("250 a\r\n250 b\r\n")).await, (ConnectionLost, Data, Some(Closed), false));
    let no_reply = pipelined().replies(go).expects("one\r\n.\r\n");
    assert_eq!(outcome(no_reply).await, (Unconfirmed, Content, Some(Closed), false));
    let half_said = pipelined().replies(go).expects("one\r\n.\r\n").replies("250-ok\r\n250 o");
    assert_eq!(outcome(half_said).await, (Unconfirmed, Content, Some(Closed), false));
    // The recipient was rejected before the connection was lost: that is certain.
    let refused = pipelined().replies("250 a\r\n550 nobody\r\n");
    assert_eq!(outcome(refused).await, (PermanentFailure, Rcpt, None, false));
}

#[tokio::test]
async fn hung_up_on_a_flight() {
    use {SmtpFault::Closed, TransactionPhase::*, TransactionVerdict::*};
    assert_eq!(outcome(flying()).await, (Unconfirmed, Mail, Some(Closed), false));
    assert_eq!(outcome(flying().replies("250 a\r\n250 b\r\n")).await, (Unconfirmed, Content, Some(Closed), false));
    assert_eq!(outcome(flying().replies("250 a\r\n550 b\r\n")).await, (PermanentFailure, Rcpt, None, false));
    assert_eq!(outcome(flying().replies("421 a\r\n")).await, (TransientFailure, Mail, None, false));
}

#[tokio::test]
async fn fell_silent() {
    use {SmtpFault::TimedOut, TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    assert_eq!(outcome(pipelined().expects_end()).await, (ConnectionLost, Mail, Some(TimedOut), false));
    let silent = pipelined().replies("250 a\r\n25").expects_end();
    assert_eq!(outcome(silent).await, (ConnectionLost, Rcpt, Some(TimedOut), false));
    let silent = pipelined().replies(go).expects("one\r\n.\r\n").expects_end();
    assert_eq!(outcome(silent).await, (Unconfirmed, Content, Some(TimedOut), false));
}

#[tokio::test]
async fn said_421() {
    use {TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    assert_eq!(outcome(pipelined().replies("421 a\r\n")).await, (TransientFailure, Mail, None, false));
    assert_eq!(outcome(pipelined().replies("250 a\r\n421 b\r\n")).await, (TransientFailure, Rcpt, None, false));
    assert_eq!(
        outcome(pipelined().replies("250 a\r\n250 b\r\n421 c\r\n")).await,
        (TransientFailure, Data, None, false)
    );
    let at_the_end = pipelined().replies(go).expects("one\r\n.\r\n").replies("421 d\r\n");
    assert_eq!(outcome(at_the_end).await, (TransientFailure, Content, None, false));
    let behind_a_refusal = pipelined().replies("250 a\r\n550 b\r\n421 c\r\n");
    assert_eq!(outcome(behind_a_refusal).await, (PermanentFailure, Rcpt, None, false));
}

#[tokio::test]
async fn talked_nonsense() {
    use {TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    let no_code = Some(SmtpFault::Malformed(ReplyParseError::NoCode));
    assert_eq!(outcome(pipelined().replies("hello\r\n")).await, (ConnectionLost, Mail, no_code, false));
    let after_the_dot = pipelined().replies(go).expects("one\r\n.\r\n").replies("thanks\r\n");
    assert_eq!(outcome(after_the_dot).await, (Unconfirmed, Content, no_code, false));
    let two_codes = pipelined().replies("250-a\r\n550 b\r\n");
    let fault = Some(SmtpFault::Malformed(ReplyParseError::TwoCodes));
    assert_eq!(outcome(two_codes).await, (ConnectionLost, Mail, fault, false));
    let endless = pipelined().replies("250-".to_owned() + &"x".repeat(5_000)).expects_end();
    assert_eq!(
        outcome(endless).await,
        (ConnectionLost, Mail, Some(SmtpFault::Malformed(ReplyParseError::TooLong)), false)
    );
    for (reply, phase, code) in [
        ("354 go\r\n", Mail, 354),
        ("250 a\r\n354 go\r\n", Rcpt, 354),
        ("250 a\r\n250 b\r\n250 not 354\r\n", Data, 250),
    ] {
        let fault = Some(SmtpFault::UnexpectedReply(code));
        assert_eq!(outcome(pipelined().replies(reply)).await, (ConnectionLost, phase, fault, false), "{reply}");
    }
    let two_replies = pipelined().replies(go).expects("one\r\n.\r\n").replies("354 more\r\n");
    assert_eq!(outcome(two_replies).await, (Unconfirmed, Content, Some(SmtpFault::UnexpectedReply(354)), false));
}

/// A message that the host accepted is not sent again because the reply is too long.
#[tokio::test]
async fn a_reply_to_the_content_is_too_long() {
    use {TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    let long = "x".repeat(5_000);
    let after_the_dot = |reply: String| pipelined().replies(go).expects("one\r\n.\r\n").replies(reply).expects_end();
    for reply in [format!("250 {long}\r\n"), format!("250 {long}"), format!("250-ok\r\n250 {long}\r\n")] {
        assert_eq!(outcome(after_the_dot(reply)).await, (Accepted, Content, None, false));
    }
    let too_long = Some(SmtpFault::Malformed(ReplyParseError::TooLong));
    for reply in [format!("550 {long}\r\n"), format!("450 {long}"), format!("354 {long}")] {
        assert_eq!(outcome(after_the_dot(reply)).await, (Unconfirmed, Content, too_long, false));
    }
    let flight = flying().replies("250 a\r\n250 b\r\n").replies(format!("250 2.0.0 {long}")).expects_end();
    assert_eq!(outcome(flight).await, (Accepted, Content, None, false));
}

/// A message that the host accepted is not sent again because the reply is malformed: only its code counts (RFC 5321
/// 4.2).
#[tokio::test]
async fn a_reply_to_the_content_is_malformed() {
    use {TransactionPhase::*, TransactionVerdict::*};
    let go = "250 a\r\n250 b\r\n354 c\r\n";
    let after_the_dot = |reply: &str| pipelined().replies(go).expects("one\r\n.\r\n").replies(reply).expects_end();
    for reply in ["250\tqueued\r\n", "250ok\r\n", "250-queued\r\n251 ok\r\n"] {
        assert_eq!(outcome(after_the_dot(reply)).await, (Accepted, Content, None, false), "{reply}");
    }
    let (no_code, two_codes) = (ReplyParseError::NoCode, ReplyParseError::TwoCodes);
    for (reply, error) in
        [("999 what\r\n", no_code), ("what?\r\n", no_code), ("550no\r\n", no_code), ("250-a\r\n550 b\r\n", two_codes)]
    {
        let fault = Some(SmtpFault::Malformed(error));
        assert_eq!(outcome(after_the_dot(reply)).await, (Unconfirmed, Content, fault, false), "{reply}");
    }
    let without_last_line = pipelined().replies(go).expects("one\r\n.\r\n").replies("250-a\r\n251-b\r\n");
    assert_eq!(outcome(without_last_line).await, (Unconfirmed, Content, Some(SmtpFault::Closed), false));
}

/// A surplus reply must never be taken for the reply to the next command.
#[tokio::test]
async fn one_reply_too_many() {
    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n")
        .replies("250 ok\r\n250 ok again\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    assert_eq!(connection.deliver(&shipment(1, "one"), None).await.verdict, TransactionVerdict::Accepted);
    let second = connection.deliver(&shipment(2, "two"), None).await;
    assert_eq!(
        (second.verdict, second.phase, second.fault),
        (TransactionVerdict::ConnectionLost, TransactionPhase::Idle, Some(SmtpFault::UnsolicitedData))
    );
    assert!(second.transcript.to_string().contains("< 250 ok again"));
    drop(connection);
    host.done().await;

    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("250 ok\r\n250 again\r\n250 a\r\n250 b\r\n354 go\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let (first, two) = (shipment(1, "one"), shipment(2, "two"));
    assert_eq!(connection.deliver(&first, Some(&two)).await.verdict, TransactionVerdict::Accepted);
    let second = connection.deliver(&two, None).await;
    assert_eq!((second.verdict, second.phase), (TransactionVerdict::ConnectionLost, TransactionPhase::Data));
    assert!(!connection.is_usable());
    drop(connection);
    host.done().await;
}

#[tokio::test]
async fn hung_up_while_it_waited() {
    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n")
        .replies("250 ok\r\n421 4.4.2 idle for too long\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    assert_eq!(connection.deliver(&shipment(1, "one"), None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
    let second = connection.deliver(&shipment(2, "two"), None).await;
    assert_eq!((second.verdict, second.phase), (TransactionVerdict::ConnectionLost, TransactionPhase::Idle));
    assert_eq!(second.reply.unwrap().code, 421);
    assert!(!connection.is_usable());
    let next = connection.deliver(&shipment(3, "three"), None).await;
    assert_eq!((next.verdict, next.fault), (TransactionVerdict::ConnectionLost, Some(SmtpFault::ConnectionEnded)));
}

/// 503 to a MAIL after another transaction is about the sequence, not about the message.
#[tokio::test]
async fn out_of_sequence() {
    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("451 later\r\n503 nested MAIL\r\n250 b\r\n354 go\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let (first, two) = (shipment(1, "one"), shipment(2, "two"));
    assert_eq!(connection.deliver(&first, Some(&two)).await.verdict, TransactionVerdict::TransientFailure);
    let second = connection.deliver(&two, None).await;
    assert_eq!(
        (second.verdict, second.fault),
        (TransactionVerdict::ConnectionLost, Some(SmtpFault::UnexpectedReply(503)))
    );
    drop(connection);
    host.done().await;
    assert_eq!(
        outcome(pipelined().replies("503 say HELO first\r\n503 x\r\n503 y\r\n")).await,
        (TransactionVerdict::PermanentFailure, TransactionPhase::Mail, None, true)
    );
}

/// The content of one message never follows the envelope of another.
#[tokio::test]
async fn not_the_one_whose_envelope_went_ahead() {
    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("250 ok\r\n250 a\r\n250 b\r\n354 go\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let (first, second) = (shipment(1, "one"), shipment(2, "two"));
    connection.deliver(&first, Some(&second)).await;
    let unsent = connection.deliver(&shipment(3, "three"), None).await;
    assert_eq!((unsent.verdict, unsent.fault), (TransactionVerdict::ConnectionLost, Some(SmtpFault::WrongEnvelope)));
    assert!(!connection.is_usable());
    drop(connection);
    host.done().await;
}

/// A host that stops reading in the middle and replies with the reason.
#[tokio::test]
async fn cut_off_in_the_content() {
    let host = pipelined()
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("0123456789\r\n")
        .replies("552 5.3.4 that is enough\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let mut vast = shipment(1, "");
    vast.body = vec![bytes::Bytes::from("0123456789\r\n".repeat(4_000_000))];
    let delivery = connection.deliver(&vast, None).await;
    // The TCP reset may overtake the reply; in either case the message was not accepted.
    assert!(
        matches!(delivery.verdict, TransactionVerdict::PermanentFailure | TransactionVerdict::ConnectionLost),
        "{:?}",
        delivery.verdict
    );
    assert_eq!(delivery.phase, TransactionPhase::Content);
    assert!(!connection.is_usable());
    host.done().await;
}

/// A cancelled delivery leaves no usable connection behind.
#[tokio::test]
async fn dropped_half_way() {
    let host = pipelined().expects_end().start().await;
    let mut connection = host.connect().await;
    let first = shipment(1, "one");
    {
        let delivery = connection.deliver(&first, None);
        tokio::pin!(delivery);
        tokio::select! {
            biased;
            _ = &mut delivery => panic!("nobody answered"),
            () = tokio::task::yield_now() => {}
        }
    }
    assert!(!connection.is_usable());
    drop(connection);
    host.done().await;
}
