//! Tests of the report parsers against the corpus in `tests/returned`, one file per format.
//!
//! The first line of a file is `expect:` with the expected result: `failed hard unknown_user 550 5.1.1 mx.example`
//! (`-` for an absent value), `delayed`, `complaint abuse`, `nothing`. The message follows.

use super::*;

use proptest::prelude::*;

const OURS: &str = "ada@recipient.example";

fn corpus() -> Vec<(String, String, Vec<u8>)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/returned");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read(path).unwrap();
        let end = text.iter().position(|byte| *byte == b'\n').unwrap();
        let expected = String::from_utf8(text[..end].to_vec()).unwrap();
        let expected = expected.strip_prefix("expect: ").unwrap().trim().to_owned();
        // Mail ends lines with CRLF; corpus files with LF.
        let message = String::from_utf8_lossy(&text[end + 1..]).replace("\r\n", "\n").replace('\n', "\r\n");
        (path.file_name().unwrap().to_string_lossy().into_owned(), expected, message.into_bytes())
    };
    files.iter().map(read).collect()
}

fn describe(parsed: &ParsedReport) -> String {
    match parsed {
        ParsedReport::Failed(failure) => {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            format!(
                "failed {} {} {} {} {}",
                if failure.soft { "soft" } else { "hard" },
                serde_json::to_value(failure.class()).unwrap().as_str().unwrap(),
                or_dash(failure.has_code.then(|| failure.reply.code.to_string())),
                or_dash(failure.reply.enhanced.map(|code| code.to_string())),
                or_dash(failure.host.clone()),
            )
        }
        ParsedReport::Delayed(_) => "delayed".to_owned(),
        ParsedReport::Complaint(complaint) => format!("complaint {}", complaint.feedback_type),
        ParsedReport::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn every_report_of_the_corpus_is_parsed() {
    let about: Address = OURS.parse().unwrap();
    let corpus = corpus();
    assert!(corpus.len() >= 40, "{}", corpus.len());
    let wrong: Vec<String> = corpus
        .iter()
        .filter_map(|(name, expected, message)| {
            let parsed = describe(&parse(message, Some(&about), None));
            (parsed != *expected).then(|| format!("{name}: `{parsed}`, expected `{expected}`"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_truncated_report_gives_the_same_result_or_none() {
    for (name, _, message) in corpus() {
        let whole = describe(&parse(&message, None, None));
        let kind = |description: &str| description.split(' ').next().unwrap_or_default().to_owned();
        for end in (0..message.len()).step_by(97) {
            let cut = kind(&describe(&parse(&message[..end], None, None)));
            // A group for another recipient may follow the cut: until then the first failure counts.
            let known = [kind(&whole), "nothing".to_owned(), "failed".to_owned(), "complaint".to_owned()];
            assert!(known.contains(&cut), "{name} cut at {end}: {cut}");
        }
    }
}

#[test]
fn references_to_the_email_are_found() {
    let complaint = |name: &str| {
        let (_, _, message) = corpus().into_iter().find(|(file, ..)| file == name).unwrap();
        parse_complaint(&message).unwrap_or_else(|| panic!("{name}"))
    };
    let address = |text: &str| text.parse::<Address>().unwrap();
    let path = address("b-01jd3k5m7n9pqrstvwxyz01234-0-abcdefgh@rp.acme.example");
    let yahoo = complaint("arf_yahoo.eml");
    assert_eq!(yahoo.return_paths, std::slice::from_ref(&path));
    assert_eq!(yahoo.message_id.as_deref(), Some("01jd3k5m7n9pqrstvwxyz01234@acme.example"));
    assert_eq!(yahoo.user_agent.as_deref(), Some("Yahoo!-Mail-Feedback/2.0"));
    assert_eq!(yahoo.recipients, [address("ada@yahoo.example")]);
    assert!(yahoo.arrived_at.is_some());
    let outlook = complaint("jmrp_outlook.eml");
    assert_eq!(
        (outlook.feedback_type.as_str(), &outlook.recipients[..]),
        ("abuse", &[address("ada@hotmail.example")][..])
    );
    assert_eq!(complaint("arf_redacted.eml").return_paths, std::slice::from_ref(&path));
    assert_eq!(complaint("arf_rewritten_sender.eml").return_paths[0].local_part(), path.local_part());
    let (_, _, spam) = corpus().into_iter().find(|(file, ..)| file == "arf_not_spam.eml").unwrap();
    assert_eq!(parse_complaint(&spam), None);
}

proptest! {
    /// Any bytes are parsed without panic, and the result is bounded.
    #[test]
    fn any_bytes_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..4_000)) {
        bounded(&parse(&bytes, None, None))?;
        let _ = parse_complaint(&bytes);
    }

    /// Corrupted reports are parsed without panic.
    #[test]
    fn broken_reports_are_parsed(
        corpus_index in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let corpus = corpus();
        let mut message = corpus[corpus_index.index(corpus.len())].2.clone();
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        bounded(&parse(&message, Some(&OURS.parse().unwrap()), None))?;
        let _ = parse_complaint(&message);
    }
}

fn bounded(parsed: &ParsedReport) -> Result<(), TestCaseError> {
    if let ParsedReport::Failed(failure) | ParsedReport::Delayed(failure) = parsed {
        prop_assert!(failure.diagnostic.chars().count() <= 1_000 && !failure.diagnostic.contains(char::is_control));
        prop_assert!((400..600).contains(&failure.reply.code));
        prop_assert!(!failure.reply.text().contains(char::is_control));
    }
    Ok(())
}
