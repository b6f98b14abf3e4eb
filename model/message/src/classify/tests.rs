//! Tests with real replies of mail servers: the corpus `model/message/tests/replies.txt`.
//!
//! A line `[host]` starts the replies of one host. A row has the expected category, the phase and the reply. An action
//! may follow the category after a `/`. The lines of a reply are separated by ` ¶ `.

use serde::Deserialize as _;

use super::*;
use crate::reply::Enhanced;

const CORPUS: &str = include_str!("../../tests/replies.txt");

struct CorpusRow {
    line: usize,
    host: String,
    expected: String,
    phase: AttemptPhase,
    reply: SmtpReply,
}

fn corpus() -> Vec<CorpusRow> {
    let mut host = String::new();
    let mut rows = Vec::new();
    for (number, line) in CORPUS.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut host);
            continue;
        }
        let row = || {
            let mut columns = line.splitn(3, ' ');
            let (expected, phase, reply) = (columns.next()?, columns.next()?, columns.next()?);
            let phase: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
                serde::de::IntoDeserializer::into_deserializer(phase);
            Some(CorpusRow {
                line: number + 1,
                host: host.clone(),
                expected: expected.to_owned(),
                phase: AttemptPhase::deserialize(phase).ok()?,
                reply: reply_of(reply)?,
            })
        };
        rows.push(row().unwrap_or_else(|| panic!("line {}: {line}", number + 1)));
    }
    rows
}

/// Parses a reply as the SMTP client does.
fn reply_of(wire: &str) -> Option<SmtpReply> {
    let lines: Vec<&str> = wire.split(" ¶ ").collect();
    let code = lines.first()?.get(..3)?.parse().ok()?;
    let texts = lines.iter().map(|line| line.get(4..).unwrap_or_default());
    let split = |text: &str| {
        Enhanced::split_prefix(text)
            .filter(|(found, _)| u16::from(found.class) == code / 100)
            .map(|(found, rest)| (found, rest.to_owned()))
    };
    let enhanced = split(lines.first()?.get(4..)?).map(|(found, _)| found);
    let lines = texts.map(|text| match split(text) {
        Some((found, rest)) if Some(found) == enhanced => rest.into(),
        _ => text.to_owned().into(),
    });
    Some(SmtpReply { code, enhanced, lines: lines.collect() })
}

#[test]
fn every_reply_of_the_corpus_is_classified_as_expected() {
    let corpus = corpus();
    assert!(corpus.len() >= 300, "{}", corpus.len());
    let result = |row: &CorpusRow| {
        let host = Some(row.host.as_str());
        let reason = classify(host, &row.reply, row.phase).word();
        match ReplyRules::default().classify(&ClassifierInput::new(host, &row.reply, row.phase)).action {
            Some(ReplyAction::Pause(_)) => format!("{reason}/pause"),
            Some(action) => format!("{reason}/{action}"),
            None => reason.to_owned(),
        }
    };
    let wrong: Vec<String> = corpus
        .iter()
        .filter(|row| result(row) != row.expected)
        .map(|row| format!("{}: {}, not {}: {:?} {}", row.line, result(row), row.expected, row.phase, row.reply))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), corpus.len(), wrong.join("\n"));
    let undetermined = corpus.iter().filter(|row| row.expected.starts_with("undetermined")).count();
    assert!(undetermined * 12 <= corpus.len(), "{undetermined} of {} are undetermined", corpus.len());
}

#[test]
fn a_permanent_refusal_that_blames_the_sender_never_blames_the_recipient() {
    // Without the host: the same text could be sent by an unknown server.
    let blamed: Vec<String> = corpus()
        .iter()
        .filter(|row| row.reply.code >= 500)
        .filter(|row| ["policy", "reputation", "content"].iter().any(|kind| row.expected.starts_with(kind)))
        .filter(|row| classify(None, &row.reply, row.phase).is_about_recipient())
        .map(|row| format!("{}: {}", row.line, row.reply))
        .collect();
    assert!(blamed.len() <= 5, "{} would suppress for good:\n{}", blamed.len(), blamed.join("\n"));
}

#[test]
fn an_unknown_user_before_rcpt_is_the_sender() {
    let reply = SmtpReply::new(550, Enhanced::new(5, 1, 1), "user unknown");
    assert_eq!(classify(None, &reply, AttemptPhase::Mail), BounceClass::Policy);
    assert_eq!(classify(None, &reply, AttemptPhase::Rcpt), BounceClass::UnknownUser);
}
