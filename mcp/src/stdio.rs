//! The transport over standard input and output: one message a line.
//!
//! ```text
//! line ─► parse ─► a task per request (bounded) ─► writer ─► line
//! ```
//!
//! Nothing but messages is written to the output. The end of the input ends the server, after the answers to all
//! requests.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::json_rpc::{self, Message, RpcError, RpcRequest, error_code};
use crate::request_meta::RequestMeta;
use crate::server::{ServerResponse, answer};
use crate::streamable_http::MESSAGE_BYTES_MAX;
use crate::tool::ToolSet;

/// Requests at work at once; the next line is read when one of them is answered.
const REQUESTS_MAX: usize = 16;

/// Serves until the input ends.
pub async fn serve<R, W>(mut input: R, mut output: W, tools: Arc<dyn ToolSet>) -> io::Result<()>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, mut answers) = mpsc::channel::<Value>(REQUESTS_MAX);
    let writer = tokio::spawn(async move {
        while let Some(answer) = answers.recv().await {
            output.write_all(format!("{answer}\n").as_bytes()).await?;
            output.flush().await?;
        }
        io::Result::Ok(())
    });
    let mut running = JoinSet::new();
    let mut line = Vec::new();
    while read_line(&mut input, &mut line).await? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = match line.len() > MESSAGE_BYTES_MAX {
            true => Err(RpcError::new(error_code::INVALID_REQUEST, "The message is larger than 4 MB").response(None)),
            false => json_rpc::parse(&line).map_err(|malformed| malformed.response()),
        };
        while running.len() >= REQUESTS_MAX {
            running.join_next().await;
        }
        match parsed {
            Ok(Message::Notification { .. }) => {}
            Ok(Message::Request(request)) => {
                let (tools, sender) = (Arc::clone(&tools), sender.clone());
                running.spawn(async move {
                    // The writer has ended only if the output failed, which ends the server.
                    let _ = sender.send(respond(&request, &*tools).await).await;
                });
            }
            Err(response) => {
                if sender.send(response).await.is_err() {
                    break;
                }
            }
        }
    }
    while running.join_next().await.is_some() {}
    drop(sender);
    writer.await.map_err(io::Error::other)?
}

async fn respond(request: &RpcRequest, tools: &dyn ToolSet) -> Value {
    let has_version = RequestMeta::version(&request.params).is_some() || request.method == "server/discover";
    let meta = match has_version {
        true => RequestMeta::read(&request.params),
        false => Ok(RequestMeta::default()),
    };
    let outcome = match meta {
        Ok(meta) => answer(request, &meta, tools).await,
        Err(error) => ServerResponse::Error(error),
    };
    match outcome {
        ServerResponse::Result(value) => value,
        ServerResponse::Error(error) => error.response(Some(&request.id)),
        ServerResponse::Unauthorized => {
            let text = "The API key is unknown, revoked or expired: store another one with `postrider login`";
            RpcError::new(error_code::INVALID_REQUEST, text).response(Some(&request.id))
        }
    }
}

/// Reads a line, without its end; of a line that is too long, the rest is skipped. False at the end of the input.
async fn read_line<R: AsyncBufRead + Unpin>(input: &mut R, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = (&mut *input).take(MESSAGE_BYTES_MAX as u64 + 2).read_until(b'\n', line).await?;
    if read == 0 {
        return Ok(false);
    }
    while line.len() > MESSAGE_BYTES_MAX && line.last() != Some(&b'\n') {
        let mut rest = Vec::new();
        let more = (&mut *input).take(MESSAGE_BYTES_MAX as u64).read_until(b'\n', &mut rest).await?;
        if more == 0 || rest.last() == Some(&b'\n') {
            break;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
