//! `postrider setup`: from an installed package to a server that sends and receives mail.
//!
//! ```text
//! machine ─► answers ─► configuration ─► service ─► account ─► DNS records ─► certificate ─► test mail ─► summary
//! └─ prepare: interrupted by Ctrl-C ──┘  └─ complete: each phase checks whether an earlier run has done its work ─┘
//! ```
//!
//! Nothing is remembered between runs: the configuration file, the store of the running server and the DNS show what is
//! done. So a run that was interrupted at any point is continued by the same command. A file that exists is never
//! overwritten. The phases talk to the operator through a [`Dialog`], and to the server through its admin socket.

mod account;
mod admin_client;
mod answers;
mod certificate;
mod config_file;
mod dialog;
mod error;
mod host_records;
mod installation;
mod machine;
mod options;
mod publication;
mod service;
mod summary;
mod test_mail;
#[cfg(test)]
mod testing;

pub use self::dialog::{Dialog, StandardDialog};
pub use self::error::{EXIT_AGAIN, SetupError};
pub use self::installation::Installation;
pub use self::options::{AnswerFlags, DEFAULT_CONFIG, SetupOptions};

/// Phases in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetupPhase {
    Machine,
    Answers,
    Configuration,
    Service,
    Account,
    Records,
    Certificate,
    TestMail,
    Summary,
}

impl SetupPhase {
    const ALL: [Self; 9] = [
        Self::Machine,
        Self::Answers,
        Self::Configuration,
        Self::Service,
        Self::Account,
        Self::Records,
        Self::Certificate,
        Self::TestMail,
        Self::Summary,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Machine => "Checking this machine",
            Self::Answers => "Questions",
            Self::Configuration => "Configuration",
            Self::Service => "Server",
            Self::Account => "Account and domain",
            Self::Records => "DNS records",
            Self::Certificate => "Certificate",
            Self::TestMail => "Test email",
            Self::Summary => "Final checks",
        }
    }

    fn print_heading(self, dialog: &mut dyn Dialog) {
        let position = Self::ALL.iter().position(|phase| *phase == self).unwrap_or_default() + 1;
        dialog.print("");
        dialog.print(&format!("== {position}/{} {}", Self::ALL.len(), self.title()));
    }
}

/// Checks the machine, asks the questions and writes the configuration.
///
/// # Errors
/// Returns a [`SetupError`] that says what to do.
pub async fn prepare(dialog: &mut dyn Dialog, options: &SetupOptions) -> Result<Installation, SetupError> {
    dialog.print("This sets up a mail server on this machine. You can stop with Ctrl-C at any time and run");
    dialog.print("the command again: it continues where it stopped.");
    let existing = config_file::load(&options.config)?;
    if existing.is_none() {
        config_file::check_writable(&options.config)?;
        answers::check_flags(dialog, options)?;
    }
    SetupPhase::Machine.print_heading(dialog);
    let addresses = machine::check(dialog, options, existing.as_ref()).await?;
    SetupPhase::Answers.print_heading(dialog);
    let answers = answers::collect(dialog, options, existing.as_ref())?;
    SetupPhase::Configuration.print_heading(dialog);
    let config = match existing {
        Some(config) => {
            dialog.print(&format!("{} exists and is used as it is.", options.config.display()));
            config
        }
        None => config_file::create(dialog, options, &answers).await?,
    };
    Ok(Installation { config, answers, addresses })
}

/// Starts the server, creates account and domain, waits for DNS and the certificate, and sends the test mail.
///
/// # Errors
/// Returns a [`SetupError`] that says what to do.
pub async fn complete(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    SetupPhase::Service.print_heading(dialog);
    service::start(dialog, options, installation).await?;
    SetupPhase::Account.print_heading(dialog);
    account::create(dialog, options, installation).await?;
    SetupPhase::Records.print_heading(dialog);
    publication::run(dialog, options, installation).await?;
    SetupPhase::Certificate.print_heading(dialog);
    certificate::wait(dialog, options, installation).await?;
    SetupPhase::TestMail.print_heading(dialog);
    test_mail::deliver(dialog, options, installation).await?;
    SetupPhase::Summary.print_heading(dialog);
    summary::print(dialog, options, installation).await
}

/// Prints how to continue after Ctrl-C.
pub fn print_interrupted(dialog: &mut dyn Dialog, options: &SetupOptions) {
    dialog.print("");
    dialog.print(&format!("Stopped. Run `{}` again to go on.", options.command_again()));
}
