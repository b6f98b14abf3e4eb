//! The classification of an SMTP reply by the server.

use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/replies" => show;
};

#[answer]
struct Explanation {
    reply: String,
    category: String,
    about: String,
    /// The action of a rule.
    action: Option<String>,
    explanation: String,
    suppression: Option<String>,
    destination: Option<String>,
}

impl Explanation {
    fn facts(&self) -> Facts {
        let about = match self.about.as_str() {
            "recipient" => "The recipient: only this address is affected",
            _ => "The sender: this server, its addresses or its mail",
        };
        Facts::new()
            .row("Reply", &self.reply)
            .row("Category", sentence_case(&self.category))
            .row("Concerns", about)
            .optional("Action", self.action.as_ref())
            .row("Email", &self.explanation)
            .optional("Address", self.suppression.as_ref())
            .optional("Destination", self.destination.as_ref())
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let (reply, host) = (context.query().get("reply").trim(), context.query().get("host").trim());
    let filters = [
        Filter::text("reply", "Reply", "421 4.7.28 too much mail"),
        Filter::text("host", "Mail host", "mx.example.com"),
    ];
    let host = Some(host).filter(|host| !host.is_empty());
    let call = Call::new("reply").json(json!({"reply": reply, "host": host}));
    let explained = if reply.is_empty() { None } else { Some(context.read::<Explanation>(&call).await) };
    let bar = FilterBar { context, filters: &filters };
    let body = maud_borrow! {
        (bar)
        div data-fragment="list" {
            @match &explained {
                None => { p.card.calm { "Enter a mail host's reply, for example from the history of an email." } }
                Some(Ok(explanation)) => { div.card { (explanation.facts()) } }
                Some(Err(failure)) => { div.notice.bad role="alert" { p { (failure.message.replace('`', "")) } } }
            }
        }
    };
    let page = Page::new("Replies", body).lead("How the current rules classify a reply, and what the server does.");
    Ok(if reply.is_empty() { page } else { page.same_as(call) }.into())
}
