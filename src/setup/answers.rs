//! The four questions, their defaults, and the validation of the answers.
//!
//! An answer comes from its flag, from the existing configuration, from the default (with `--yes`), or from the
//! operator. All four ways use the same parser.

use std::path::Path;

use message::address::{Address, DomainName};
use message::domain_name::{self, is_never_public};

use super::dialog::Dialog;
use super::error::SetupError;
use super::installation::Answers;
use super::options::SetupOptions;
use crate::config::Config;

/// Maximum number of times that a question is asked.
const TRIES_MAX: usize = 3;

/// A question, with the flag that answers it.
struct Question<'a, T> {
    flag: &'static str,
    /// Explanation above the question.
    intro: &'a str,
    prompt: &'a str,
    default: Option<String>,
    parse: &'a dyn Fn(&str) -> Result<T, String>,
}

impl<T> Question<'_, T> {
    fn answer(&self, dialog: &mut dyn Dialog, given: Option<&str>, accept_default: bool) -> Result<T, SetupError> {
        if let Some(text) = given {
            return (self.parse)(text).map_err(|reason| SetupError::InvalidFlag { flag: self.flag, reason });
        }
        if let Some(default) = self.default.as_deref().filter(|_| accept_default) {
            return (self.parse)(default).map_err(|reason| SetupError::InvalidFlag { flag: self.flag, reason });
        }
        dialog.print(self.intro);
        let prompt = match &self.default {
            Some(default) => format!("{} [{default}]:", self.prompt),
            None => format!("{}:", self.prompt),
        };
        for _ in 0..TRIES_MAX {
            let Some(line) = dialog.ask(&prompt)? else { break };
            let text = Some(line.trim()).filter(|line| !line.is_empty()).or(self.default.as_deref());
            match text.map(self.parse) {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(reason)) => dialog.print(&format!("  {reason}")),
                None => dialog.print("  An answer is required."),
            }
        }
        Err(SetupError::NoAnswer { flag: self.flag })
    }
}

/// Refuses invalid flags, and missing ones if questions cannot be asked.
pub(super) fn check_flags(dialog: &dyn Dialog, options: &SetupOptions) -> Result<(), SetupError> {
    validate_flags(options)?;
    if dialog.can_ask() {
        return Ok(());
    }
    let (flags, accepts_defaults) = (&options.flags, options.yes);
    let hostname = flags.hostname.clone().or_else(|| default_hostname().filter(|_| accepts_defaults));
    let domain_of_hostname = || default_domain(&hostname.as_deref()?.parse().ok()?).filter(|_| accepts_defaults);
    let domain = flags.domain.clone().or_else(domain_of_hostname);
    let missing: Vec<&'static str> = [
        (hostname.is_some(), "--hostname"),
        (domain.is_some(), "--domain"),
        (flags.owner.is_some(), "--owner"),
        (flags.receives().is_some() || accepts_defaults, "--receive or --no-receive"),
    ]
    .into_iter()
    .filter(|(is_present, _)| !is_present)
    .map(|(_, flag)| flag)
    .collect();
    if missing.is_empty() { Ok(()) } else { Err(SetupError::MissingFlags { flags: missing }) }
}

/// Validates the flags as far as they do not depend on questions.
fn validate_flags(options: &SetupOptions) -> Result<(), SetupError> {
    let (flags, allow_private) = (&options.flags, allows_private_names(options)?);
    let invalid = |flag: &'static str| move |reason| SetupError::InvalidFlag { flag, reason };
    let parse = |text: &str| parse_hostname(text, allow_private).map_err(invalid("--hostname"));
    let hostname = flags.hostname.as_deref().map(parse).transpose()?;
    if let (Some(text), Some(hostname)) = (&flags.domain, &hostname) {
        parse_sending_domain(text, hostname, allow_private).map_err(invalid("--domain"))?;
    }
    if let Some(text) = &flags.owner {
        parse_owner(text).map_err(invalid("--owner"))?;
    }
    Ok(())
}

/// Returns whether the environment configures a private network, whose names are not in the public DNS.
fn allows_private_names(options: &SetupOptions) -> Result<bool, SetupError> {
    Ok(super::config_file::provisional(options)?.delivery.allow_private_destinations)
}

/// The hostname as far as it is known before the questions.
pub(super) fn hostname_hint(options: &SetupOptions) -> Option<DomainName> {
    options.flags.hostname.clone().or_else(default_hostname)?.parse().ok()
}

/// Collects the answers. An existing configuration answers what it contains.
pub(super) fn collect(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    existing: Option<&Config>,
) -> Result<Answers, SetupError> {
    let answers = match existing {
        Some(config) => from_config(dialog, options, config)?,
        None => ask_all(dialog, options)?,
    };
    let mail = if answers.receive { "sends and receives" } else { "sends" };
    dialog.print(&format!(
        "{} {mail} mail for {}; {} owns the account.",
        answers.hostname, answers.domain, answers.owner
    ));
    Ok(answers)
}

fn ask_all(dialog: &mut dyn Dialog, options: &SetupOptions) -> Result<Answers, SetupError> {
    let (flags, yes) = (&options.flags, options.yes);
    let allow_private = allows_private_names(options)?;
    let hostname = Question {
        flag: "--hostname",
        intro: "The DNS name of this server. You must be able to set its address. Example: mx1.example.net.",
        prompt: "Hostname",
        default: default_hostname(),
        parse: &|text| parse_hostname(text, allow_private),
    }
    .answer(dialog, flags.hostname.as_deref(), yes)?;
    let domain = Question {
        flag: "--domain",
        intro: "The domain of the addresses that you send from: the part after the @.",
        prompt: "Sending domain",
        default: default_domain(&hostname),
        parse: &|text| parse_sending_domain(text, &hostname, allow_private),
    }
    .answer(dialog, flags.domain.as_deref(), yes)?;
    let owner = Question {
        flag: "--owner",
        intro: "Your own address, preferably at another provider. It gets sign-in links, complaints and the test email.",
        prompt: "Your email address",
        default: None,
        parse: &parse_owner,
    }
    .answer(dialog, flags.owner.as_deref(), yes)?;
    let receive = Question {
        flag: "--receive",
        intro: "Should this server also receive the domain's mail? Answer no if its mailboxes are elsewhere, because its\n\
                MX record would have to point here.",
        prompt: "Receive mail? yes or no",
        default: Some("no".to_owned()),
        parse: &|text| parse_receive(text, &domain, &owner),
    }
    .answer(dialog, flags.receives().map(yes_or_no), yes)?;
    Ok(Answers { hostname, domain, owner, receive })
}

/// The answers that a configuration contains. Flags select another domain or owner.
fn from_config(dialog: &mut dyn Dialog, options: &SetupOptions, config: &Config) -> Result<Answers, SetupError> {
    let (flags, allow_private) = (&options.flags, config.delivery.allow_private_destinations);
    let hostname = config.hostname.clone();
    if let Some(flag) = flags.hostname.as_deref()
        && parse_hostname(flag, allow_private).ok().as_ref() != Some(&hostname)
    {
        let reason = format!("{} has the hostname {hostname}; change it there", options.config.display());
        return Err(SetupError::InvalidFlag { flag: "--hostname", reason });
    }
    let sender = config.service.sandbox_sender.as_ref();
    let domain = flags.domain.clone().or_else(|| sender.map(|sender| sender.domain().to_string()));
    let contact = config.tls.acme.as_ref().and_then(|acme| acme.contact.as_deref());
    let contact = contact.map(|contact| contact.strip_prefix("mailto:").unwrap_or(contact).to_owned());
    let postmaster = config.mx.postmaster.as_ref().map(ToString::to_string);
    let owner = flags.owner.clone().or(postmaster).or(contact);
    let missing: Vec<&'static str> =
        [(&domain, "--domain"), (&owner, "--owner")].into_iter().filter(|(v, _)| v.is_none()).map(|(_, f)| f).collect();
    if !missing.is_empty() && !dialog.can_ask() {
        return Err(SetupError::MissingFlags { flags: missing });
    }
    let domain = Question {
        flag: "--domain",
        intro: "The domain of the addresses that you send from: the part after the @.",
        prompt: "Sending domain",
        default: default_domain(&hostname),
        parse: &|text| parse_sending_domain(text, &hostname, allow_private),
    }
    .answer(dialog, domain.as_deref(), options.yes)?;
    let owner = Question {
        flag: "--owner",
        intro: "Your own address. It gets sign-in links and the test email.",
        prompt: "Your email address",
        default: None,
        parse: &parse_owner,
    }
    .answer(dialog, owner.as_deref(), options.yes)?;
    let invalid = |reason| SetupError::InvalidFlag { flag: "--receive", reason };
    let receive = match flags.receives() {
        Some(receive) => parse_receive(yes_or_no(receive), &domain, &owner).map_err(invalid)?,
        None => super::host_records::has_policy_name(config, &domain),
    };
    Ok(Answers { hostname, domain, owner, receive })
}

fn parse_hostname(text: &str, allow_private: bool) -> Result<DomainName, String> {
    let text = text.trim().trim_end_matches('.');
    if text.parse::<std::net::IpAddr>().is_ok() {
        return Err(format!("{text} is an IP address; a host name is required, such as mx1.example.net"));
    }
    let name: DomainName =
        text.parse().map_err(|_| format!("`{text}` is not a host name (example: mx1.example.net)"))?;
    if name.parent().is_none() {
        return Err(format!("{name} has no domain; a full name is required, such as {name}.example.net"));
    }
    if is_never_public(&name) && !allow_private {
        return Err(format!("{name} is not in the public DNS, so other mail servers cannot find it"));
    }
    if name.as_str().contains('_') {
        return Err(format!("{name} has an underscore, which is not allowed in a host name"));
    }
    Ok(name)
}

fn parse_sending_domain(text: &str, hostname: &DomainName, allow_private: bool) -> Result<DomainName, String> {
    let name = domain_name::parse(text).map_err(|error| format!("the domain {error}"))?;
    if is_never_public(&name) && !allow_private {
        return Err(format!("{name} is not in the public DNS, so nobody could reply"));
    }
    let is_service_name = ["rp", "spf"].iter().any(|label| hostname.child(label).ok().as_ref() == Some(&name));
    if name == *hostname || is_service_name {
        let reason = "is the server's own name; use a different sending domain";
        return Err(format!("{name} {reason}, such as {}", default_domain(hostname).unwrap_or_default())
            .trim_end()
            .to_owned());
    }
    Ok(name)
}

fn parse_owner(text: &str) -> Result<Address, String> {
    text.trim().parse().map_err(|error| format!("`{text}` is not an email address: {error}"))
}

fn yes_or_no(receive: bool) -> &'static str {
    if receive { "yes" } else { "no" }
}

fn parse_receive(text: &str, domain: &DomainName, owner: &Address) -> Result<bool, String> {
    let receive = match text.to_ascii_lowercase().as_str() {
        "y" | "yes" => true,
        "n" | "no" => false,
        _ => return Err("Answer yes or no.".to_owned()),
    };
    if receive && owner.domain() == domain {
        return Err(format!(
            "mail to {owner} would then arrive on this server, and you could not sign in to read it. Answer no, or \
             choose an owner at another domain"
        ));
    }
    Ok(receive)
}

/// The machine's full name, if it has one that can be in the DNS.
fn default_hostname() -> Option<String> {
    let node = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let hosts = std::fs::read_to_string(Path::new("/etc/hosts")).unwrap_or_default();
    full_name(node.trim(), &hosts)
}

/// Completes the kernel's name of the machine from the file of hosts (hosts(5)).
fn full_name(node: &str, hosts: &str) -> Option<String> {
    let in_file = || {
        let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
        let mut names = lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>());
        let of_node = names.find(|names| names.contains(&node))?;
        of_node.into_iter().find(|name| name.contains('.')).map(str::to_owned)
    };
    let name = if node.contains('.') { Some(node.to_owned()) } else { in_file() };
    name.and_then(|name| parse_hostname(&name, false).ok()).filter(is_in_public_zone).map(|name| name.to_string())
}

/// Returns whether the name is below a domain that somebody can register.
fn is_in_public_zone(name: &DomainName) -> bool {
    const LOCAL_TOPS: [&str; 5] = ["localdomain", "lan", "home", "intranet", "arpa"];
    !name.as_str().rsplit('.').next().is_some_and(|top| LOCAL_TOPS.contains(&top))
}

/// The domain above the hostname, if it can be a sending domain.
fn default_domain(hostname: &DomainName) -> Option<String> {
    let parent = hostname.parent()?;
    domain_name::parse(parent.as_str()).ok().map(|name| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::options::AnswerFlags;
    use super::super::testing::ScriptedDialog;
    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn hostnames_are_validated() {
        assert_eq!(parse_hostname(" MX1.Example.Net. ", false), Ok(name("mx1.example.net")));
        for (text, reason) in [
            ("203.0.113.5", "IP address"),
            ("mx1", "full name"),
            ("mail server", "not a host name"),
            ("mx1.internal", "not in the public DNS"),
            ("mx_1.example.net", "underscore"),
            ("", "not a host name"),
        ] {
            let error = parse_hostname(text, false).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(parse_hostname("mx1.acme.test", true).is_ok());
    }

    #[test]
    fn the_sending_domain_is_not_the_server() {
        let hostname = name("mx1.example.net");
        assert_eq!(parse_sending_domain("example.net", &hostname, false), Ok(name("example.net")));
        assert_eq!(parse_sending_domain("other.example.org", &hostname, false), Ok(name("other.example.org")));
        let error = parse_sending_domain("mx1.example.net", &hostname, false).unwrap_err();
        assert!(error.contains("such as example.net"), "{error}");
        assert!(parse_sending_domain("rp.mx1.example.net", &hostname, false).is_err());
        assert!(parse_sending_domain("co.uk", &hostname, false).is_err());
        assert!(parse_sending_domain("you@example.net", &hostname, false).is_err());
    }

    #[test]
    fn an_owner_at_the_domain_cannot_receive_there() {
        let owner = "you@example.net".parse().unwrap();
        assert!(parse_receive("YES", &name("example.net"), &owner).unwrap_err().contains("Answer no"));
        assert_eq!(parse_receive("n", &name("example.net"), &owner), Ok(false));
        assert_eq!(parse_receive("y", &name("example.org"), &owner), Ok(true));
        assert!(parse_receive("maybe", &name("example.org"), &owner).is_err());
    }

    #[test]
    fn the_full_name_comes_from_the_kernel_or_the_file_of_hosts() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1 mx1.example.net mx1 # this machine\n";
        assert_eq!(full_name("mx1", hosts).as_deref(), Some("mx1.example.net"));
        assert_eq!(full_name("mx2.example.org", hosts).as_deref(), Some("mx2.example.org"));
        assert_eq!(full_name("mx3", hosts), None);
        assert_eq!(full_name("mx1.localdomain", ""), None);
        assert_eq!(full_name("localhost", "127.0.0.1 localhost.localdomain localhost"), None);
        assert_eq!(default_domain(&name("mx1.example.net")).as_deref(), Some("example.net"));
        assert_eq!(default_domain(&name("example.net")), None, "the domain above is a public suffix");
    }

    fn options(flags: AnswerFlags) -> SetupOptions {
        SetupOptions { flags, ..SetupOptions::default() }
    }

    #[test]
    fn a_wrong_answer_is_asked_again_a_few_times() {
        let mut dialog = ScriptedDialog::new(&["mx1", "mx1.example.net", "", "nobody", "you@example.org", "y"]);
        let answers = collect(&mut dialog, &options(AnswerFlags::default()), None).unwrap();
        let expected = Answers {
            hostname: name("mx1.example.net"),
            domain: name("example.net"),
            owner: "you@example.org".parse().unwrap(),
            receive: true,
        };
        assert_eq!(answers, expected);
        assert!(dialog.output.contains("mx1 has no domain"), "{}", dialog.output);
        assert!(dialog.output.contains("`nobody` is not an email address"), "{}", dialog.output);

        let mut dialog = ScriptedDialog::new(&["x", "x", "x", "mx1.example.net"]);
        let error = collect(&mut dialog, &options(AnswerFlags::default()), None).unwrap_err();
        assert!(matches!(error, SetupError::NoAnswer { flag: "--hostname" }), "{error}");
    }

    #[test]
    fn flags_answer_without_a_terminal() {
        let flags = AnswerFlags {
            hostname: Some("mx1.example.net".to_owned()),
            domain: Some("example.net".to_owned()),
            owner: Some("you@example.org".to_owned()),
            ..AnswerFlags::default()
        };
        let mut dialog = ScriptedDialog::without_terminal();
        let error = check_flags(&dialog, &options(flags.clone())).unwrap_err();
        assert_eq!(error.exit_status(), 64);
        assert!(error.to_string().contains("add --receive or --no-receive"), "{error}");
        let complete = options(AnswerFlags { no_receive: true, ..flags.clone() });
        assert!(check_flags(&dialog, &complete).is_ok());
        assert_eq!(collect(&mut dialog, &complete, None).unwrap().domain, name("example.net"));
        let with_yes = SetupOptions { yes: true, ..options(AnswerFlags { domain: None, ..flags.clone() }) };
        assert!(check_flags(&dialog, &with_yes).is_ok());
        assert_eq!(collect(&mut dialog, &with_yes, None).unwrap().domain, name("example.net"));
        let invalid = options(AnswerFlags { domain: Some("co.uk".to_owned()), no_receive: true, ..flags });
        assert_eq!(collect(&mut dialog, &invalid, None).unwrap_err().exit_status(), 64);
    }

    #[test]
    fn a_configuration_answers_the_questions() {
        let text = "hostname = \"mx1.example.net\"\n[mx]\npostmaster = \"you@example.org\"\n[api]\nlisten = \"127.0.0.1:443\"\n\
                    tls = true\n[service]\nsandbox_sender = \"postrider@example.net\"\n[tls.acme]\nnames = \"mta-sts.example.net\"\n";
        let config = crate::config::from_text(text, []).unwrap();
        let mut dialog = ScriptedDialog::without_terminal();
        let answers = collect(&mut dialog, &options(AnswerFlags::default()), Some(&config)).unwrap();
        assert_eq!((answers.domain, answers.receive), (name("example.net"), true));
        assert_eq!(answers.owner.to_string(), "you@example.org");
        let other = AnswerFlags { hostname: Some("mx2.example.net".to_owned()), ..AnswerFlags::default() };
        let error = collect(&mut dialog, &options(other), Some(&config)).unwrap_err();
        assert!(error.to_string().contains("change it there"), "{error}");
        let owner_at_domain =
            AnswerFlags { owner: Some("you@example.net".to_owned()), receive: true, ..AnswerFlags::default() };
        let error = collect(&mut dialog, &options(owner_at_domain), Some(&config)).unwrap_err();
        assert!(error.exit_status() == 64 && error.to_string().starts_with("--receive: "), "{error}");
    }
}
