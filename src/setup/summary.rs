//! The checks of `postrider doctor` after the setup, and what the operator can do next.

use net::clock::Clock;

use super::dialog::Dialog;
use super::error::SetupError;
use super::installation::Installation;
use super::options::SetupOptions;
use crate::doctor::CheckRunner;
use crate::doctor::context::CheckContext;
use crate::doctor::finding::{CheckStatus, DoctorFinding};
use crate::doctor::render::{render_finding, render_summary};

/// Runs all checks, prints those that are not well, and the closing lines.
pub(super) async fn print(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    let context = CheckContext::build(installation.config.clone(), options.doctor_options(), Clock::default())
        .await
        .map_err(|error| SetupError::NoResolver(error.to_string()))?;
    let mut findings: Vec<DoctorFinding> = Vec::new();
    let mut runner = CheckRunner::start(context);
    loop {
        let running = runner.running();
        if !running.is_empty() {
            dialog.show_live(&[format!("  checking {}", running.join(", "))]);
        }
        let Some(finding) = runner.next_finding().await else { break };
        if finding.status >= CheckStatus::Warning {
            let text = render_finding(&finding, dialog.style());
            dialog.print(text.trim_end());
        }
        findings.push(finding);
    }
    dialog.print(&render_summary(&findings));
    let needs_work = findings.iter().any(|finding| finding.status >= CheckStatus::Warning);
    closing_lines(options, installation, needs_work).iter().for_each(|line| dialog.print(line));
    Ok(())
}

fn closing_lines(options: &SetupOptions, installation: &Installation, needs_work: bool) -> Vec<String> {
    let (config, answers) = (&installation.config, &installation.answers);
    let mail = if answers.receive { "sends and receives" } else { "sends" };
    let mut lines =
        vec![String::new(), format!("Setup is complete: {} {mail} mail for {}.", answers.hostname, answers.domain)];
    if needs_work {
        lines.push(format!("Fix the findings above when you can; `{}` repeats the checks.", options.command("doctor")));
    }
    lines.push(String::new());
    let mut next = |what: &str, how: String| lines.push(format!("  {what:<22} {how}"));
    if let Some(url) = &config.api.base_url {
        next("dashboard", format!("{}/dashboard", url.trim_end_matches('/')));
        let session = options.command("admin session create");
        next("a sign-in link", format!("{session} --account {}", answers.owner));
        next("API reference", format!("{}/docs", url.trim_end_matches('/')));
    }
    if !config.ops.listen.is_empty() {
        next("the operator's console", options.command("admin console"));
    }
    next("health", options.command("status"));
    next("add another domain", format!("{} NAME --account {}", options.command("admin domain create"), answers.owner));
    lines.push(String::new());
    lines.push(format!(
        "Keep a copy of {} somewhere else: without it, a backup is useless.",
        config.data_dir.join("secret.key").display()
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::testing::installation;
    use super::*;

    #[test]
    fn commands_name_the_configuration_if_it_is_another() {
        let options = SetupOptions { config: super::super::options::DEFAULT_CONFIG.into(), ..SetupOptions::default() };
        let text = closing_lines(&options, &installation(""), false).join("\n");
        assert!(text.contains("https://mx1.example.net/dashboard"), "{text}");
        assert!(text.contains("postrider status") && !text.contains("--config"), "{text}");
        let other = SetupOptions { config: "/srv/p.toml".into(), ..SetupOptions::default() };
        let text = closing_lines(&other, &installation(""), true).join("\n");
        assert!(text.contains("postrider status --config /srv/p.toml"), "{text}");
        assert!(text.contains("`postrider doctor --config /srv/p.toml` repeats the checks"), "{text}");
    }
}
