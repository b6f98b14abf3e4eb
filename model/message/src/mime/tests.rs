//! Malformed messages.

use super::*;

fn read(text: &str) -> Message<'_> {
    parse(&MessageParser::default(), text.as_bytes()).unwrap()
}

fn texts(message: &Message<'_>) -> Vec<String> {
    let text_of = |part: &MessagePart<'_>| match &part.body {
        PartType::Text(text) => format!("text:{text}"),
        PartType::Html(text) => format!("html:{text}"),
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => {
            format!("file:{}", String::from_utf8_lossy(bytes))
        }
        PartType::Multipart(parts) => format!("multipart:{parts:?}"),
        PartType::Message(_) => "message".to_owned(),
    };
    message.parts.iter().map(text_of).collect()
}

#[test]
fn parts_are_found() {
    let message = read(
        "Content-Type: multipart/mixed; boundary=x\r\n\r\npreamble --x\r\n--x\r\n\
         Content-Type: multipart/alternative; boundary=xy\r\n\r\n--xy\r\n\r\nhi --x\r\n--xy\r\n\
         Content-Type: text/html\r\n\r\n<p>hi</p>\r\n--xy--\r\nbetween\r\n--x  \r\n\
         Content-Type: message/rfc822\r\n\r\nSubject: in\r\n\r\nwithin\r\n--x--\r\nepilogue\r\n",
    );
    let wanted =
        ["multipart:[1, 4]", "multipart:[2, 3]", "text:hi --x", "html:<p>hi</p>", "file:Subject: in\r\n\r\nwithin"];
    assert_eq!(texts(&message), wanted);
    assert_eq!((&*message.text_body, &*message.html_body, &*message.attachments), (&[2][..], &[3][..], &[4][..]));
    let raw = message.raw_message();
    let within = &message.parts[4];
    assert_eq!(&raw[within.offset_body as usize..within.offset_end as usize], b"Subject: in\r\n\r\nwithin");
    let subject = read("A: b\r\nSubject: c\r\n\r\nd");
    let field = &subject.parts[0].headers[1];
    assert_eq!(&subject.raw_message()[field.offset_start as usize..field.offset_end as usize], b" c\r\n");
}

#[test]
fn truncated_messages_are_parsed_to_their_end() {
    for (text, wanted) in [
        ("A: b\r\n\r\nhi", vec!["text:hi"]),
        ("A: b", vec!["text:"]),
        ("Content-Type: multipart/mixed; boundary=x\r\n\r\nhi", vec!["file:hi"]),
        ("Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n", vec!["multipart:[1]", "text:"]),
        ("Content-Type: multipart/mixed; boundary=x\r\n\r\n--x--\r\n", vec!["multipart:[]"]),
        (
            "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n\
             --y\r\n\r\nhi\r\n--x\r\n\r\nho\r\n--x--",
            vec!["multipart:[1, 3]", "multipart:[2]", "text:hi", "text:ho"],
        ),
        ("Content-Type: text\r\n\r\nhi", vec!["text:hi"]),
        ("Content-Type: text/plain; charset=cp932\r\n\r\nhi", vec!["text:hi"]),
    ] {
        assert_eq!(texts(&read(text)), wanted, "{text}");
    }
    assert!(parse(&MessageParser::default(), b"").is_none());
    assert!(parse(&MessageParser::default(), b"\r\nhi").is_none());
}

#[test]
fn files_are_distinguished_from_texts() {
    let part_kind = |fields: &str| {
        let text = format!(
            "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhi\r\n--x\r\n{fields}\r\n\r\nho\r\n--x--\r\n"
        );
        let message = read(&text);
        (message.text_body.clone(), message.html_body.clone(), message.attachments.clone())
    };
    let both = (vec![1, 2], vec![1, 2], vec![]);
    let file = (vec![1], vec![1], vec![2]);
    assert_eq!(part_kind("Content-Type: text/plain"), both);
    assert_eq!(part_kind("Content-Type: text/plain; name=a.txt"), file);
    assert_eq!(part_kind("Content-Type: text/plain\r\nContent-Disposition: inline; filename=a.txt"), file);
    assert_eq!(part_kind("Content-Type: text/plain\r\nContent-Disposition: attachment"), file);
    assert_eq!(part_kind("Content-Type: text/calendar"), file);
    for media in [
        "Content-Type: image/png; name=a.png",
        "Content-Type: image/jpeg\r\nContent-Disposition: inline",
        "Content-Type: audio/mpeg",
        "Content-Type: video/mp4\r\nContent-Disposition: inline; filename=a.mp4",
    ] {
        assert_eq!(part_kind(media), file, "{media}");
    }
    assert_eq!(part_kind("Content-Type: application/pdf"), file);
}

/// Nested and repetitive messages do not grow beyond their own size.
#[test]
fn hostile_structures_use_bounded_memory() {
    let digest: String =
        (0..20_000).map(|n| format!("Content-Type: multipart/digest; boundary=y{n}\r\n\r\n--y{n}\r\n\r\n")).collect();
    let within = "Content-Type: message/rfc822\r\n\r\n".repeat(50_000);
    let multiparts: String =
        (0..3_000).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect();
    for text in [
        digest,
        format!("Content-Type: multipart/mixed; boundary=zz\r\n\r\nx--zz\r\n--zz\r\n{within}"),
        "A: b\r\n \r\nContent-Type: message/rfc822\r\n\r\n".repeat(50_000),
        within,
        multiparts,
        format!(
            "A: b; boundary=x\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n{}",
            "--x\r\n\r\n".repeat(100_000)
        ),
        format!("Content-Type: multipart/mixed; boundary=x\r\n\r\n{}", "--x\r\na:\r\nb:\r\n".repeat(100_000)),
        "a:\r\n".repeat(1_000_000),
    ] {
        let message = read(&text);
        assert!(message.parts.len() <= PARTS_MAX);
        let headers: usize = message.parts.iter().map(|part| part.headers.len()).sum();
        assert!(headers <= HEADER_LINES_MAX + HEADER_BYTES_MAX / 4, "{headers}");
        let bytes: usize = message.parts.iter().map(|part| part.contents().len()).sum();
        assert!(bytes <= text.len(), "{bytes} of {}", text.len());
    }
}
