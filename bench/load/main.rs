//! `load`: what the benchmark needs beside Postfix's `smtp-source` and `smtp-sink`.
//!
//! Flow: `bench/run` starts `load names` once, as the name server that both peers ask, and
//! `load send` once per measurement, for the loads that `smtp-source` cannot make: STARTTLS with AUTH and a
//! full handshake per connection, one message each to many domains, and messages signed by DKIM from domains
//! that publish what a host that receives asks for; and `load post` for what comes over HTTP. Each prints one line of
//! JSON: how many messages were accepted, in how long, and how long one took. For the rows of egress there is
//! `load sink`, which knows when each recipient was first tried, and `load fill`, which writes domains into a store.
//!
//! Limits: one thread for all sessions; replies up to [`smtp::REPLY_BYTES_MAX`].
//! The client speaks in lockstep (no PIPELINING), as `smtp-source` and most mail clients do.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// What the load costs is missing from what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod fill;
mod measure;
mod names;
mod places;
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
    /// Sends messages and prints what came of them as one line of JSON.
    Send(send::Plan),
    /// Posts emails over HTTP and prints what came of them as one line of JSON.
    Post(post::Plan),
    /// Takes mail at many addresses and notes when each recipient was first tried.
    Sink(sink::Plan),
    /// Writes domains with keys into a store that no server has open.
    Fill(fill::Plan),
    /// Answers for every name below `bench.test`.
    Names {
        /// Address and port, UDP.
        #[arg(long, default_value = "127.0.0.53:53")]
        listen: std::net::SocketAddr,
        /// With an RSA key (PEM), every name publishes what receivers ask for: it, as a key of DKIM, and records
        /// of SPF and DMARC.
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
