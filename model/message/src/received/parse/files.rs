//! Tests: which parts of a received message are attachments, and that their bytes are returned unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// A deterministic generator of test data.
struct TestNumbers(u64);

impl TestNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn choose<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn bytes(&mut self, kind: &str) -> Vec<u8> {
        let length = self.below(400);
        match kind {
            "ascii" => (0..length).map(|_| b" abcdefghij=.,"[self.below(14)]).collect(),
            "lines" => (0..length).flat_map(|_| *b"one line\r\n").collect(),
            "latin1" => (0..length).map(|_| [b'a', 0xe4, 0xfc, 0xdf, b' '][self.below(5)]).collect(),
            "utf8" => "Grüße, こんにちは\n".repeat(length / 20).into_bytes(),
            "jpeg" => [b"\xff\xd8\xff\xe0\0\x10JFIF\0".as_slice(), &self.bytes("any")].concat(),
            _ => (0..length).map(|_| u8::try_from(self.below(256)).unwrap()).collect(),
        }
    }
}

fn quoted_printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        out.push_str(&format!("={byte:02X}"));
        if index % 20 == 19 {
            out.push_str("=\r\n");
        }
    }
    out
}

/// One attachment: its header, its encoded bytes and its bytes.
fn attached(numbers: &mut TestNumbers) -> (String, Vec<u8>, Vec<u8>) {
    let bytes = {
        let kind = numbers.choose(&["ascii", "lines", "latin1", "utf8", "jpeg", "any"]);
        numbers.bytes(kind)
    };
    let kind = numbers.choose(&[
        "text/plain",
        "text/plain; charset=iso-8859-1",
        "text/plain; charset=utf-16",
        "text/csv; charset=windows-1252",
        "text/html; charset=utf-8",
        "text/calendar; charset=iso-2022-jp",
        "image/jpeg",
        "application/octet-stream",
        "message/rfc822",
    ]);
    let disposition = match kind {
        "image/jpeg" => numbers.choose(&["attachment; filename=a.jpg", "inline; filename=a.jpg", "inline"]),
        _ => numbers.choose(&["attachment", "attachment; filename=\"a b.txt\"", "attachment; filename=a.txt"]),
    };
    let is_plain = bytes.is_ascii() && !bytes.contains(&b'-');
    let (encoding, encoded) = match numbers.below(if is_plain { 3 } else { 2 }) {
        0 => ("base64", STANDARD.encode(&bytes).into_bytes()),
        1 => ("quoted-printable", quoted_printable(&bytes).into_bytes()),
        _ => ("7bit", bytes.clone()),
    };
    let header = format!(
        "Content-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\nContent-Disposition: {disposition}\r\n"
    );
    (header, encoded, bytes)
}

#[test]
fn every_attached_file_has_the_bytes_that_were_sent() {
    let mut numbers = TestNumbers(24);
    for _ in 0..300 {
        let mut message = b"Subject: x\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhi\r\n".to_vec();
        let files: Vec<_> = (0..=numbers.below(4)).map(|_| attached(&mut numbers)).collect();
        for (header, encoded, _) in &files {
            message.extend_from_slice(format!("--x\r\n{header}\r\n").as_bytes());
            message.extend_from_slice(encoded);
            message.extend_from_slice(b"\r\n");
        }
        message.extend_from_slice(b"--x--\r\n");
        let reading = ParsedReceivedEmail::parse(&message);
        assert_eq!(reading.attachments.len(), files.len());
        assert_eq!(reading.heading.attachment_count, files.len() as u64);
        for (index, (header, _, bytes)) in files.iter().enumerate() {
            let read = &reading.attachments[index];
            assert!(read.data == *bytes, "{header}");
            assert_eq!(read.file.size_bytes, bytes.len() as u64, "{header}");
            assert_eq!(ParsedReceivedEmail::parse_attachment(&message, index).as_ref(), Some(read));
        }
    }
}

#[test]
fn the_declared_charset_is_returned() {
    let message = b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nhi\r\n--x\r\n\
        Content-Type: text/plain; charset=ISO-8859-1; name=a.txt\r\n\r\n\xe4\r\n--x\r\n\
        Content-Type: text/plain; name=b.txt\r\n\r\n\xe4\r\n--x--\r\n";
    let read = ParsedReceivedEmail::parse(message);
    let charsets: Vec<_> =
        read.attachments.iter().map(|attachment| (attachment.charset.as_deref(), &*attachment.data)).collect();
    assert_eq!(charsets, [(Some("ISO-8859-1"), &b"\xe4"[..]), (None, b"\xe4")]);
}

/// Apple Mail sends photos between texts, inline or without a disposition.
#[test]
fn inline_images_are_attachments() {
    let message = "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nLook:\r\n\
        --x\r\nContent-Type: image/jpeg; name=IMG_1.jpeg\r\nContent-Disposition: inline; filename=IMG_1.jpeg\r\n\
        Content-Transfer-Encoding: base64\r\n\r\neHl6\r\n--x\r\nContent-Type: text/plain\r\n\r\nand\r\n--x\r\n\
        Content-Type: audio/mpeg\r\n\r\nabc\r\n--x\r\nContent-Type: video/mp4\r\nContent-Disposition: inline\r\n\r\nabcd\r\n--x--\r\n";
    let read = ParsedReceivedEmail::parse(message.as_bytes());
    assert_eq!(read.text.as_deref(), Some("Look:\nand"));
    let files: Vec<String> = read
        .attachments
        .iter()
        .map(|attachment| {
            format!(
                "{} {} {} {}",
                attachment.file.filename,
                attachment.file.content_type,
                attachment.file.size_bytes,
                attachment.disposition
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            "IMG_1.jpeg image/jpeg 3 inline",
            "attachment-2.bin audio/mpeg 3 attachment",
            "attachment-3.bin video/mp4 4 inline"
        ]
    );
    assert_eq!(ParsedReceivedEmail::parse_header(message.as_bytes()).attachment_count, 3);
    assert_eq!(ParsedReceivedEmail::parse_attachment(message.as_bytes(), 0).unwrap().data, b"xyz");
}

#[test]
fn a_message_of_one_image_has_an_attachment() {
    for disposition in ["", "Content-Disposition: inline\r\n", "Content-Disposition: inline; filename=a.png\r\n"] {
        let message =
            format!("Content-Type: image/png\r\n{disposition}Content-Transfer-Encoding: base64\r\n\r\neHl6\r\n");
        let read = ParsedReceivedEmail::parse(message.as_bytes());
        assert_eq!((read.text, read.html, read.heading.attachment_count), (None, None, 1), "{disposition}");
        assert_eq!(read.attachments[0].data, b"xyz");
    }
}
