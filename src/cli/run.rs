//! `postrider serve` and `dev`: configure the process, run the server, return the exit code.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::Value;

use super::{ConfigArguments, DevArguments, ServeArguments};
use crate::config::{self, Config, ConfigProblem};
use crate::{dev, log, serve};

/// Raises the limit of open files to the hard limit: a mail server has thousands of connections.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, the current limit applies, and listeners report when they reach it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Makes new files private to the process's user whatever the umask: they contain mail and secrets.
pub(super) fn set_private_umask() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

pub(super) fn build_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

pub(super) fn load_config(arguments: &ConfigArguments) -> Result<Config, Vec<ConfigProblem>> {
    let config = config::from_file(&arguments.config)?;
    for variable in &config.ignored_variables {
        eprintln!("postrider: warning: the environment variable {variable} is not a setting and is ignored");
    }
    Ok(config)
}

/// Runs the server until SIGTERM or SIGINT.
#[must_use]
pub fn serve(arguments: &ServeArguments) -> ExitCode {
    raise_file_limit();
    set_private_umask();
    let config = match load_config(&arguments.config) {
        Ok(config) => config,
        Err(problems) => return super::check::refuse(&arguments.config, problems),
    };
    log::begin(&config.log);
    if cfg!(debug_assertions) {
        tracing::warn!(
            "this is a debug build, which is several times slower; for production, build with `cargo build --release`"
        );
    }
    let (file, send) = (arguments.config.config.clone(), arguments.send);
    exit_code(
        build_runtime()
            .map_err(|error| error.to_string())
            .and_then(|runtime| runtime.block_on(serve::serve(config, file, send)).map_err(|error| error.to_string())),
    )
}

/// Runs the development server until SIGTERM or SIGINT.
#[must_use]
pub fn dev(arguments: &DevArguments) -> ExitCode {
    log::begin(&dev::log_section());
    raise_file_limit();
    set_private_umask();
    exit_code(
        build_runtime()
            .map_err(|error| error.to_string())
            .and_then(|runtime| runtime.block_on(dev::run(arguments)).map_err(|error| error.to_string())),
    )
}

fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postrider: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Formats a JSON value as text: one line per field, lists indented, multi-line texts as blocks.
#[must_use]
pub fn render_readable(value: &Value) -> String {
    let mut out = String::new();
    write_readable(&mut out, value, 0);
    out
}

fn write_readable(out: &mut String, value: &Value, depth: usize) {
    let pad = "  ".repeat(depth);
    // Writing to a String does not fail.
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Null => {}
                    Value::Object(inner) if inner.is_empty() => {}
                    Value::Array(inner) if inner.is_empty() => {
                        let _ = writeln!(out, "{pad}{name}: none");
                    }
                    Value::Object(_) | Value::Array(_) => {
                        let _ = writeln!(out, "{pad}{name}:");
                        write_readable(out, value, depth + 1);
                    }
                    Value::String(text) if text.contains('\n') => {
                        let _ = writeln!(out, "{pad}{name}:");
                        text.lines().for_each(|line| {
                            let _ = writeln!(out, "{pad}  | {line}");
                        });
                    }
                    plain => {
                        let _ = writeln!(out, "{pad}{name}: {}", scalar_text(plain));
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                write_readable(&mut inner, item, depth + 1);
                let bullet = format!("{pad}- ");
                out.push_str(&inner.replacen(&"  ".repeat(depth + 1), &bullet, 1));
            }
        }
        plain => {
            let _ = writeln!(out, "{pad}{}", scalar_text(plain));
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_rendered_as_text() {
        let value = json!({"a": 1, "b": null, "list": [{"x": "y", "z": 2}, {"x": "w"}], "text": "one\ntwo"});
        let text = render_readable(&value);
        assert_eq!(text, "a: 1\nlist:\n  - x: y\n    z: 2\n  - x: w\ntext:\n  | one\n  | two\n");
    }
}
