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

use std::io;

use tokio::sync::Mutex;

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
            let ignored = options.config_flags();
            if !ignored.is_empty() {
                dialog.print(&format!("Without effect on it: {}. Change the file instead.", ignored.join(", ")));
            }
            config
        }
        None => config_file::create(dialog, options, &answers)?,
    };
    Ok(Installation { config, answers, addresses })
}

/// Starts the server, creates account and domain, waits for DNS and the certificate, and sends the test mail. Returns
/// false if `interruption` ended it. The creation of the account is completed first: its secrets exist nowhere else.
pub async fn complete(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
    interruption: impl Future<Output = io::Result<()>>,
) -> Result<bool, SetupError> {
    let creating = Mutex::new(());
    let phases = run_phases(dialog, options, installation, &creating);
    run_until_interrupted(phases, &creating, interruption).await
}

/// Returns false if the work was interrupted, which happens only while `creating` is not locked.
async fn run_until_interrupted(
    work: impl Future<Output = Result<(), SetupError>>,
    creating: &Mutex<()>,
    interruption: impl Future<Output = io::Result<()>>,
) -> Result<bool, SetupError> {
    let interrupted = async {
        interruption.await?;
        drop(creating.lock().await);
        Ok::<(), SetupError>(())
    };
    tokio::select! {
        result = work => result.map(|()| true),
        result = interrupted => result.map(|()| false),
    }
}

async fn run_phases(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
    creating: &Mutex<()>,
) -> Result<(), SetupError> {
    SetupPhase::Service.print_heading(dialog);
    service::start(dialog, options, installation).await?;
    SetupPhase::Account.print_heading(dialog);
    account::create(dialog, options, installation, creating).await?;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn an_interruption_waits_for_the_account() {
        let (creating, is_created) = (Mutex::new(()), Cell::new(false));
        let work = async {
            let guard = creating.lock().await;
            for _ in 0..10 {
                yield_now().await;
            }
            is_created.set(true);
            drop(guard);
            std::future::pending().await
        };
        let interruption = async {
            yield_now().await;
            Ok(())
        };
        assert!(!run_until_interrupted(work, &creating, interruption).await.unwrap());
        assert!(is_created.get());
    }
}
