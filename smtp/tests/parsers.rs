//! Property tests of the arguments of MAIL and RCPT: any bytes are parsed or refused, and parsing preserves them.

#![allow(clippy::unwrap_used, reason = "a test")]

use message::address::{Address, DomainName};
use proptest::prelude::*;
use smtp::parameter;
use smtp::path::{self, ReversePath};
use smtp::settings::ListenerRole;

/// Texts that are addresses, or almost.
fn near_address() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z.+-]{1,12}@[a-z0-9.-]{1,20}",
        r#""[ -~]{0,12}"@[a-z.]{1,12}"#,
        r"[a-z]{1,5}@\[[0-9.:a-fIPv6]{1,20}\]",
        "@[a-z.]{1,8}(,@[a-z.]{1,8})?:[a-z]{1,5}@[a-z.]{1,8}",
        "[a-zäß]{0,8}@[a-zü.]{0,12}",
        "[ -~]{0,40}",
        any::<String>(),
    ]
}

/// Parameters of extensions that are valid, or almost.
fn near_parameter() -> impl Strategy<Value = String> {
    let keyword = prop::sample::select(vec![
        "SIZE",
        "BODY",
        "SMTPUTF8",
        "RET",
        "ENVID",
        "NOTIFY",
        "ORCPT",
        "AUTH",
        "REQUIRETLS",
        "HOLDFOR",
        "HOLDUNTIL",
        "BY",
        "MT-PRIORITY",
        "x",
    ]);
    let value = prop_oneof![
        Just(String::new()),
        "=[0-9]{1,22}",
        "=-?[0-9]{1,10};[RNTrnt]{0,3}",
        "=(8BITMIME|7BIT|BINARYMIME|FULL|HDRS|NEVER|SUCCESS,FAILURE,DELAY|NEVER,DELAY)",
        r"=rfc822;[!-~+]{0,20}",
        "=[ -~]{0,20}",
        "=20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:00Z",
    ];
    (keyword, value).prop_map(|(keyword, value)| format!("{keyword}{value}"))
}

fn with_parameters(all: &[String]) -> Vec<u8> {
    let all: String = all.iter().map(|parameter| format!(" {parameter}")).collect();
    format!("{all}\r\n").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn paths_round_trip(address in near_address(), tail in "( [ -~]{0,10})?") {
        let line = format!("TO:<{address}>{tail}\r\n");
        let hostname: DomainName = "mx.example".parse().unwrap();
        if let Ok(cut) = path::split_path(line.as_bytes(), "TO") {
            // A `>` ends the path only outside of a quoted string, so an open quote may reach into the tail.
            let ends_at_first_bracket = !address.contains(['>', '"']);
            prop_assert!(!ends_at_first_bracket || address.ends_with(cut.text));
            let bracketed = [cut.text, ">"].concat();
            prop_assert!(line.contains(&bracketed));
            if let Ok(read) = path::parse_forward_path(cut.text, true, &hostname) {
                prop_assert_eq!(read.to_string().parse::<Address>(), Ok(read));
            }
            if let Ok(ReversePath::Address(read)) = path::parse_reverse_path(cut.text, true) {
                let written = read.to_string();
                prop_assert!(!written.chars().any(|c| c.is_control() || c == '\r' || c == '\n'));
                prop_assert_eq!(Address::parse_lenient(&written), Ok(read));
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_as_a_path_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let line = [b"FROM:", &bytes[..]].concat();
        if let Ok(cut) = path::split_path(&line, "FROM") {
            let _ = path::parse_reverse_path(cut.text, true);
            let _ = path::parse_reverse_path(cut.text, false);
        }
    }

    #[test]
    fn parameters_are_parsed_or_refused(all in prop::collection::vec(near_parameter(), 0..5)) {
        let tail = with_parameters(&all);
        for role in [ListenerRole::Submission, ListenerRole::Relay, ListenerRole::Mx] {
            if let Err(refusal) = parameter::parse_mail_parameters(&tail, role) {
                prop_assert!((500..600).contains(&refusal.reply().code));
            }
            if let Err(refusal) = parameter::parse_rcpt_parameters(&tail, true, role) {
                prop_assert!((500..600).contains(&refusal.reply().code));
            }
        }
    }
}
