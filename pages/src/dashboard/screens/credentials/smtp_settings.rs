//! The settings of common programs for SMTP.

use super::Credential;
use crate::dashboard::kit::secret::SecretUse;
use crate::dashboard::prelude::*;

/// Stands for a password that is not shown any more.
pub(super) const PASSWORD: &str = "YOUR_PASSWORD";

fn copied<'a>(text: &'a str, label: &'a str) -> impl Renderable + 'a {
    maud! { span.copied { code { (text) } " " (copy_button(text, label)) } }
}

/// Host, port, encryption and user name.
pub(super) fn facts(credential: &Credential) -> Facts {
    let security = if is_tls(credential) { "TLS from the start" } else { "STARTTLS" };
    Facts::new()
        .row("Host", copied(&credential.host, "the host"))
        .row("Port", copied(&credential.port.to_string(), "the port"))
        .row("Encryption", security)
        .row("User name", copied(&credential.username, "the user name"))
}

fn is_tls(credential: &Credential) -> bool {
    credential.security == "tls"
}

/// The settings with a password.
pub(super) fn uses(credential: &Credential, password: &str) -> Vec<SecretUse> {
    let (host, port, user) = (&credential.host, credential.port, &credential.username);
    let tls = is_tls(credential);
    let scheme = if tls { "smtps" } else { "smtp" };
    let entry = |title, code| SecretUse { title, code };
    vec![
        entry(
            "Laravel (.env)",
            format!(
                "MAIL_MAILER=smtp\nMAIL_SCHEME={scheme}\nMAIL_HOST={host}\nMAIL_PORT={port}\nMAIL_USERNAME={user}\nMAIL_PASSWORD={password}"
            ),
        ),
        entry(
            "Django (settings.py)",
            format!(
                "EMAIL_HOST = \"{host}\"\nEMAIL_PORT = {port}\nEMAIL_HOST_USER = \"{user}\"\nEMAIL_HOST_PASSWORD = \"{password}\"\n{} = True",
                if tls { "EMAIL_USE_SSL" } else { "EMAIL_USE_TLS" }
            ),
        ),
        entry(
            "Ruby on Rails (production.rb)",
            format!(
                "config.action_mailer.delivery_method = :smtp\nconfig.action_mailer.smtp_settings = {{\n  address: \"{host}\",\n  \
                 port: {port},\n  user_name: \"{user}\",\n  password: \"{password}\",\n  authentication: :plain,\n  {}: true\n}}",
                if tls { "tls" } else { "enable_starttls" }
            ),
        ),
        entry(
            "Node with Nodemailer",
            format!(
                "const transport = nodemailer.createTransport({{\n  host: \"{host}\",\n  port: {port},\n  secure: {tls},\n  \
                 requireTLS: {},\n  auth: {{ user: \"{user}\", pass: \"{password}\" }},\n}});",
                !tls
            ),
        ),
        entry("Symfony (.env)", format!("MAILER_DSN={scheme}://{}:{}@{host}:{port}", encode(user), encode(password))),
        entry(
            "Spring Boot (application.properties)",
            format!(
                "spring.mail.host={host}\nspring.mail.port={port}\nspring.mail.username={user}\nspring.mail.password={password}\n\
                 spring.mail.properties.mail.smtp.auth=true\nspring.mail.properties.mail.smtp.{}=true",
                if tls { "ssl.enable" } else { "starttls.required" }
            ),
        ),
        entry(
            "WordPress with WP Mail SMTP (wp-config.php)",
            format!(
                "define( 'WPMS_ON', true );\ndefine( 'WPMS_MAILER', 'smtp' );\ndefine( 'WPMS_SMTP_HOST', '{host}' );\n\
                 define( 'WPMS_SMTP_PORT', {port} );\ndefine( 'WPMS_SSL', '{}' );\ndefine( 'WPMS_SMTP_AUTH', true );\n\
                 define( 'WPMS_SMTP_USER', '{user}' );\ndefine( 'WPMS_SMTP_PASS', '{password}' );",
                if tls { "ssl" } else { "tls" }
            ),
        ),
        entry(
            "Postfix as a relay (main.cf and sasl_passwd)",
            format!(
                "# main.cf\nrelayhost = [{host}]:{port}\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_security_options = noanonymous\n\
                 smtp_sasl_password_maps = hash:/etc/postfix/sasl_passwd\nsmtp_tls_security_level = encrypt\n{}\n# sasl_passwd, then: \
                 postmap /etc/postfix/sasl_passwd\n[{host}]:{port} {user}:{password}",
                if tls { "smtp_tls_wrappermode = yes\n" } else { "" }
            ),
        ),
        entry(
            "A test with swaks",
            format!(
                "swaks --server {host}:{port} {} --auth PLAIN \\\n  --auth-user {user} --auth-password {password} \\\n  \
                 --from hello@example.com --to delivered@simulator.postrider.test",
                if tls { "--tlsc" } else { "--tls" }
            ),
        ),
    ]
}
