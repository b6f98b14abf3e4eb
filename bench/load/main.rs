//! `load`: load generator, name server and mail sink that the benchmark needs besides Postfix's `smtp-source` and
//! `smtp-sink`.
//!
//! `bench/run` starts `load names` once, as the name server of both peers. For each measurement it starts:
//!
//! - `load send`, for SMTP loads that `smtp-source` cannot make: STARTTLS with AUTH and a full handshake for each
//!   connection, one message to each of many domains, and DKIM-signed messages from domains that publish the records
//!   that an MX host checks;
//! - `load post`, for the HTTP API.
//!
//! Both print one line of JSON: the number of accepted messages, the total time and the latency of one message. For
//! the egress rows, `load sink` logs when each recipient was first tried, and `load fill` writes domains into a store.
//!
//! Limits: all sessions run on one thread; replies are at most [`smtp::REPLY_BYTES_MAX`] bytes. The client does not
//! use PIPELINING, as `smtp-source` and most mail clients do not.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// A fast allocator, so that the load generator takes little CPU from the server that is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod fill;
mod measure;
mod names;
mod numbered_hosts;
mod post;
mod send;
mod sender;
mod sink;
mod smtp;
mod tls;

#[derive(Parser)]
#[command(about = "Load and a name server for bench/run")]
struct Arguments {
    #[command(subcommand)]
    work: Work,
}

#[derive(Subcommand)]
enum Work {
    /// Sends messages over SMTP and prints the result as one line of JSON.
    Send(send::Plan),
    /// Posts emails over HTTP and prints the result as one line of JSON.
    Post(post::Plan),
    /// Accepts mail at many addresses and logs when each recipient was first tried.
    Sink(sink::Plan),
    /// Writes domains with keys into the store of a stopped server.
    Fill(fill::Plan),
    /// Serves DNS for every name below `bench.test`.
    Names {
        /// Address and port, UDP.
        #[arg(long, default_value = "127.0.0.53:53")]
        listen: std::net::SocketAddr,
        /// RSA key (PEM). If it is set, every name publishes it as a DKIM key, with SPF and DMARC records.
        #[arg(long)]
        key: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().work {
        Work::Send(plan) => send::run(&plan),
        Work::Post(plan) => post::run(&plan),
        Work::Sink(plan) => sink::run(&plan),
        Work::Fill(plan) => fill::run(&plan),
        Work::Names { listen, key } => names::serve(listen, key.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}
