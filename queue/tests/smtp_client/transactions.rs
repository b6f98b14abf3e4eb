//! Transactions with well-behaved hosts: pipelining, BDAT, parameters, rejections.

use bytes::Bytes;
use queue::delivery::client::smtp::{TransactionPhase, TransactionVerdict};

use super::script::{Script, dialer, envelope, shipment};

const PIPELINED: &[&str] = &["PIPELINING"];

#[tokio::test]
async fn one_message_pipelined() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 2.1.0 sender\r\n250 2.1.5 recipient\r\n354 go\r\n")
        .expects("Subject: x\r\n\r\n..dot\r\n.\r\n")
        .replies("250-2.0.0 taken\r\n250 2.0.0 as 4711\r\n")
        .expects("QUIT\r\n")
        .replies("221 bye\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let delivery = connection.deliver(&shipment(1, "Subject: x\r\n\r\n.dot"), None).await;
    assert_eq!(
        (delivery.verdict, delivery.phase, delivery.ordinal),
        (TransactionVerdict::Accepted, TransactionPhase::Content, 1)
    );
    assert_eq!(delivery.reply.unwrap().lines, ["taken", "as 4711"]);
    let lines = delivery.transcript.to_string();
    for part in ["* connected", "< 220 mx", "> EHLO out", "> MAIL FROM", "> [21 bytes]", "< 250 2.0.0 as 4711"] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    assert!(connection.is_usable());
    connection.quit().await;
    host.done().await;
}

#[tokio::test]
async fn quit_is_pipelined_with_the_last_message() {
    let flight = envelope(1) + "BDAT 5 LAST\r\none\r\nQUIT\r\n";
    let chunked = Script::offering(&["PIPELINING", "CHUNKING"]).expects(flight);
    let dotted = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\nQUIT\r\n");
    for (script, replies, verdict) in [
        (chunked, "250 a\r\n250 b\r\n250 taken\r\n", TransactionVerdict::Accepted),
        (dotted, "452 4.2.2 full\r\n", TransactionVerdict::TransientFailure),
    ] {
        let host = script.replies(replies).replies("221 bye\r\n").expects_end().start().await;
        let mut connection = host.connect().await;
        let delivery = connection.deliver_last(&shipment(1, "one")).await;
        assert_eq!(delivery.verdict, verdict);
        assert!(delivery.transcript.to_string().contains("> QUIT"));
        assert!(!connection.is_usable());
        connection.quit().await;
        host.done().await;
    }
}

#[tokio::test]
async fn without_pipelining_quit_waits_for_the_reply() {
    let host = Script::offering(&[])
        .expects("MAIL FROM:<v1@rp.example>\r\n")
        .replies("250 a\r\n")
        .expects("RCPT TO:<r1@d.example>\r\n")
        .replies("250 b\r\n")
        .expects("DATA\r\n")
        .replies("354 c\r\n")
        .expects("one\r\n.\r\n")
        .replies("250 taken\r\n")
        .expects("QUIT\r\n")
        .replies("221 bye\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    assert_eq!(connection.deliver_last(&shipment(1, "one")).await.verdict, TransactionVerdict::Accepted);
    connection.quit().await;
    host.done().await;
}

#[tokio::test]
async fn the_next_envelope_is_pipelined_after_the_content() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("one\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("250 taken 1\r\n250 d\r\n250 e\r\n354 f\r\n")
        .expects("two\r\n.\r\n".to_owned() + &envelope(3) + "DATA\r\n")
        .replies("250 taken 2\r\n")
        .replies("250 g\r\n550 5.1.1 nobody\r\n554 no valid recipients\r\n")
        .expects("RSET\r\n".to_owned() + &envelope(4) + "DATA\r\n")
        .replies("250 reset\r\n250 h\r\n250 i\r\n354 j\r\n")
        .expects("four\r\n.\r\n")
        .replies("452 4.2.2 full\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let four = [shipment(1, "one"), shipment(2, "two"), shipment(3, "three"), shipment(4, "four")];
    let [one, two, three, last] = &four;
    let first = connection.deliver(one, Some(two)).await;
    assert_eq!(
        (first.verdict, first.reply.unwrap().text().into_owned()),
        (TransactionVerdict::Accepted, "taken 1".into())
    );
    let second = connection.deliver(two, Some(three)).await;
    assert_eq!(second.reply.unwrap().text(), "taken 2");
    assert!(second.transcript.to_string().contains("> MAIL FROM:<v2@rp.example> (sent ahead)"));
    assert!(!second.transcript.to_string().contains("EHLO"));
    let third_result = connection.deliver(three, Some(last)).await;
    assert_eq!(
        (third_result.verdict, third_result.phase),
        (TransactionVerdict::PermanentFailure, TransactionPhase::Rcpt)
    );
    assert_eq!(third_result.reply.unwrap().to_string(), "550 5.1.1 nobody");
    assert!(connection.is_usable());
    let fourth = connection.deliver(last, None).await;
    assert_eq!((fourth.verdict, fourth.phase), (TransactionVerdict::TransientFailure, TransactionPhase::Content));
    assert!(connection.is_usable());
    drop(connection);
    host.done().await;
}

#[tokio::test]
async fn a_refused_recipient_and_354_get_a_lone_dot() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n450 4.2.1 not now\r\n354 go\r\n")
        .expects(".\r\nRSET\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("554 no valid recipients\r\n250 r\r\n250 b\r\n250 c\r\n354 go\r\n")
        .expects("two\r\n.\r\n")
        .replies("250 taken\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let (first, second) = (shipment(1, "one"), shipment(2, "two"));
    let refused = connection.deliver(&first, Some(&second)).await;
    assert_eq!((refused.verdict, refused.phase), (TransactionVerdict::TransientFailure, TransactionPhase::Rcpt));
    assert_eq!(connection.deliver(&second, None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
}

#[tokio::test]
async fn an_accepted_lone_dot_is_no_acceptance() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n550 no\r\n354 go\r\n")
        .expects(".\r\n")
        .replies("250 taken\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    // In a separate task, as the queue runs it.
    let delivering = async move { connection.deliver(&shipment(1, "one"), None).await };
    let delivery = tokio::spawn(delivering).await.unwrap();
    assert_eq!((delivery.verdict, delivery.reply.unwrap().code), (TransactionVerdict::PermanentFailure, 550));
    host.done().await;
}

#[tokio::test]
async fn no_dot_when_mail_was_refused_and_the_recipient_taken() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("451 no\r\n250 yes\r\n354 go\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let delivery = connection.deliver(&shipment(1, "one"), None).await;
    assert_eq!((delivery.verdict, delivery.phase), (TransactionVerdict::TransientFailure, TransactionPhase::Mail));
    assert!(!connection.is_usable());
    drop(connection);
    host.done().await;
}

#[tokio::test]
async fn a_rejected_mail_command_and_its_pipelined_commands() {
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("550 5.7.1 we know you\r\n503 no\r\n503 no\r\n")
        .expects("RSET\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("250 r\r\n250 a\r\n250 b\r\n451 4.3.0 disk\r\n")
        .expects("RSET\r\n".to_owned() + &envelope(3) + "DATA\r\n")
        .replies("250 r\r\n250 a\r\n250 b\r\n354 go\r\n")
        .expects("x\r\n.\r\n")
        .replies("250 ok\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let first = connection.deliver(&shipment(1, "x"), None).await;
    assert_eq!(
        (first.verdict, first.phase, first.reply.unwrap().code),
        (TransactionVerdict::PermanentFailure, TransactionPhase::Mail, 550)
    );
    let second = connection.deliver(&shipment(2, "x"), None).await;
    assert_eq!((second.verdict, second.phase), (TransactionVerdict::TransientFailure, TransactionPhase::Data));
    assert_eq!(connection.deliver(&shipment(3, "x"), None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
}

#[tokio::test]
async fn step_by_step_without_pipelining() {
    let host = Script::offering(&["8BITMIME"])
        .expects("MAIL FROM:<v1@rp.example> BODY=8BITMIME\r\n")
        .replies("250 a\r\n")
        .expects("RCPT TO:<r1@d.example>\r\n")
        .replies("550 no\r\n")
        .expects("RSET\r\n")
        .replies("250 r\r\n")
        .expects("MAIL FROM:<v2@rp.example>\r\n")
        .replies("250 a\r\n")
        .expects("RCPT TO:<r2@d.example>\r\n")
        .replies("251 b\r\n")
        .expects("DATA\r\n")
        .replies("354 c\r\n")
        .expects("two\r\n.\r\n")
        .replies("250 ok\r\n")
        .expects("MAIL FROM:<v3@rp.example>\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let mut first = shipment(1, "one");
    first.eight_bit = true;
    let (two, three) = (shipment(2, "two"), shipment(3, "x"));
    assert_eq!(connection.deliver(&first, Some(&two)).await.verdict, TransactionVerdict::PermanentFailure);
    assert_eq!(connection.deliver(&two, Some(&three)).await.verdict, TransactionVerdict::Accepted);
    let cut = connection.deliver(&three, None).await;
    assert_eq!((cut.verdict, cut.phase), (TransactionVerdict::ConnectionLost, TransactionPhase::Mail));
    host.done().await;
}

#[tokio::test]
async fn bdat_is_sent_in_one_flight() {
    let host = Script::offering(&["PIPELINING", "CHUNKING"])
        .expects(envelope(1) + "BDAT 9 LAST\r\n.one\r\nx\r\nRSET\r\n" + &envelope(2))
        .replies("250 a\r\n250 b\r\n250 taken\r\n250 r\r\n250 c\r\n250 d\r\n")
        .expects("BDAT 5 LAST\r\ntwo\r\n")
        .replies("250 taken\r\n")
        .expects(envelope(3) + "BDAT 7 LAST\r\nthree\r\nRSET\r\n" + &envelope(4))
        .replies("250 a\r\n550 nobody\r\n503 nothing to take it\r\n250 r\r\n250 c\r\n250 d\r\n")
        .expects("BDAT 6 LAST\r\nfour\r\n")
        .replies("552 too dull\r\n")
        .expects("RSET\r\n".to_owned() + &envelope(5) + "BDAT 6 LAST\r\nfive\r\n")
        .replies("250 r\r\n250 a\r\n250 b\r\n250 taken\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let mut first = shipment(1, "");
    first.body = vec![Bytes::from_static(b".one\r\n"), Bytes::from_static(b"x\r\n")];
    let (second, third, fourth) = (shipment(2, "two"), shipment(3, "three"), shipment(4, "four"));
    assert_eq!(connection.deliver(&first, Some(&second)).await.verdict, TransactionVerdict::Accepted);
    assert_eq!(connection.deliver(&second, None).await.verdict, TransactionVerdict::Accepted);
    let refused = connection.deliver(&third, Some(&fourth)).await;
    assert_eq!((refused.verdict, refused.phase), (TransactionVerdict::PermanentFailure, TransactionPhase::Rcpt));
    let dull = connection.deliver(&fourth, None).await;
    assert_eq!((dull.verdict, dull.phase), (TransactionVerdict::PermanentFailure, TransactionPhase::Content));
    assert_eq!(connection.deliver(&shipment(5, "five"), None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
}

/// RFC 3030 leaves the state after a failed BDAT undefined, so RSET is always sent before the next envelope.
#[tokio::test]
async fn the_envelope_behind_bdat_begins_with_rset() {
    let host = Script::offering(&["CHUNKING", "PIPELINING"])
        .expects(envelope(1) + "BDAT 5 LAST\r\none\r\nRSET\r\n" + &envelope(2))
        .replies("250 a\r\n250 b\r\n250 taken\r\n250 r\r\n250 c\r\n250 d\r\n")
        .expects("BDAT 5 LAST\r\ntwo\r\nRSET\r\n".to_owned() + &envelope(3))
        .replies("451 not this one\r\n250 r\r\n250 c\r\n250 d\r\n")
        .expects("BDAT 7 LAST\r\nthree\r\n")
        .replies("250 taken\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let three = [shipment(1, "one"), shipment(2, "two"), shipment(3, "three")];
    let [first, second, last] = &three;
    assert_eq!(connection.deliver(first, Some(second)).await.verdict, TransactionVerdict::Accepted);
    assert_eq!(connection.deliver(second, Some(last)).await.verdict, TransactionVerdict::TransientFailure);
    assert_eq!(connection.deliver(last, None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
}

#[tokio::test]
async fn a_large_body_waits_for_the_recipient_before_bdat() {
    let host = Script::offering(&["PIPELINING", "CHUNKING"])
        .expects(envelope(1))
        .replies("250 a\r\n550 nobody\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let mut large = shipment(1, "");
    large.body = vec![Bytes::from("0123456789\r\n".repeat(10_000))];
    assert_eq!(connection.deliver(&large, None).await.verdict, TransactionVerdict::PermanentFailure);
    drop(connection);
    host.done().await;
}

#[tokio::test]
async fn data_is_used_where_bdat_is_not_wanted() {
    let host = Script::offering(&["PIPELINING", "CHUNKING"]).expects(envelope(1) + "DATA\r\n").start().await;
    let target = host.target(queue::delivery::client::smtp::TlsSecurityLevel::Off);
    let mut connection = dialer().with_chunking(false).connect(&target).await.unwrap();
    assert_eq!(connection.deliver(&shipment(1, "x"), None).await.verdict, TransactionVerdict::ConnectionLost);
    host.done().await;
}

#[tokio::test]
async fn unsupported_messages_are_not_sent() {
    let host = Script::offering(&["PIPELINING", "SIZE 20"])
        .expects("MAIL FROM:<v9@rp.example> SIZE=20\r\nRCPT TO:<r9@d.example>\r\nDATA\r\n")
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("012345678901234567\r\n.\r\n")
        .replies("250 ok\r\n")
        .expects_end()
        .start()
        .await;
    let mut connection = host.connect().await;
    let too_large = shipment(1, "0123456789012345678");
    let refused = connection.deliver(&too_large, None).await;
    assert_eq!((refused.verdict, refused.phase), (TransactionVerdict::PermanentFailure, TransactionPhase::Local));
    assert!(refused.reply.unwrap().to_string().starts_with("552 5.3.4 "));
    let mut international = shipment(2, "x");
    international.recipient = "jos\u{e9}@d.example".parse().unwrap();
    let refused = connection.deliver(&international, None).await;
    assert_eq!(refused.verdict, TransactionVerdict::Unsupported);
    assert!(refused.reply.unwrap().to_string().starts_with("553 5.6.7 "));
    let mut secret = shipment(3, "x");
    secret.require_tls = true;
    let refused = connection.deliver(&secret, None).await;
    assert_eq!(refused.verdict, TransactionVerdict::Unsupported);
    assert!(refused.reply.unwrap().to_string().starts_with("550 5.7.30 "));
    let smuggled = connection.deliver(&shipment(4, "a\r\n.\nMAIL FROM:<>\r\n"), None).await;
    assert_eq!((smuggled.verdict, smuggled.phase), (TransactionVerdict::PermanentFailure, TransactionPhase::Local));
    assert!(matches!(smuggled.fault, Some(queue::delivery::client::smtp::SmtpFault::Content(_))));
    // None of their envelopes is sent ahead either, and the connection stays usable.
    let fits = shipment(9, "012345678901234567");
    assert_eq!(connection.deliver(&fits, Some(&too_large)).await.verdict, TransactionVerdict::Accepted);
    assert_eq!(connection.deliver(&too_large, None).await.phase, TransactionPhase::Local);
    drop(connection);
    host.done().await;
}

#[tokio::test]
async fn the_hosts_limit_on_transactions_is_kept() {
    let host = Script::offering(&["PIPELINING", "LIMITS MAILMAX=2"])
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("x\r\n.\r\n".to_owned() + &envelope(2) + "DATA\r\n")
        .replies("250 ok\r\n250 a\r\n250 b\r\n354 c\r\n")
        .expects("x\r\n.\r\n")
        .replies("250 ok\r\n")
        .expects("QUIT\r\n")
        .start()
        .await;
    let mut connection = host.connect().await;
    let messages = [shipment(1, "x"), shipment(2, "x"), shipment(3, "x")];
    let [first, second, third] = &messages;
    assert_eq!(connection.deliver(first, Some(second)).await.verdict, TransactionVerdict::Accepted);
    assert!(connection.is_usable());
    assert_eq!(connection.deliver(second, Some(third)).await.verdict, TransactionVerdict::Accepted);
    assert!(!connection.is_usable());
    connection.quit().await;
    host.done().await;
}

#[tokio::test]
async fn a_body_of_dots_and_many_chunks_arrives() {
    let lines = 5_000;
    let host = Script::offering(PIPELINED)
        .expects(envelope(1) + "DATA\r\n")
        .replies("250 a\r\n250 b\r\n354 c\r\n")
        .expects("..\r\n...x\r\ny\r\n".repeat(lines) + ".\r\n")
        .replies("250 ok\r\n")
        .start()
        .await;
    let mut dotted = shipment(1, "");
    let chunk = [Bytes::from_static(b".\r\n.."), Bytes::from_static(b"x\r"), Bytes::from_static(b"\ny\r\n")];
    dotted.body = chunk.iter().cycle().take(3 * lines).cloned().collect();
    assert_eq!(host.connect().await.deliver(&dotted, None).await.verdict, TransactionVerdict::Accepted);
    host.done().await;
}
