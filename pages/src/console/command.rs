//! The command of `postrider admin` that is the same as a call.

use serde_json::Value;

use super::duration;
use crate::dashboard::backend::{Call, CallBody};
use crate::dashboard::kit::snippet::shell_quoted;

/// The command line; `None` for calls that have none.
pub fn command_line(call: &Call) -> Option<String> {
    let none = Value::Null;
    let body = match &call.body {
        CallBody::Json(body) => body,
        _ => &none,
    };
    let line = match call.operation {
        "doctor" => return Some("postrider doctor".to_owned()),
        "status" => Line::new("status"),
        "certificate_show" => Line::new("certificate"),
        "store_check" => Line::new("store check"),
        "queue_top" => Line::new("queue top").flag("--limit", &body["limit"]),
        "queue_list" => Line::new("queue list")
            .flag("--limit", &body["limit"])
            .filter(&body["filter"])
            .flag("--recipient", &body["search"]["recipient"])
            .flag("--sender", &body["search"]["sender"])
            .flag("--message-id", &body["search"]["message_id"])
            .flag("--cursor", &body["cursor"]),
        "queue" => queue_command(body).word(&body["email"]),
        "queue_many" if is_empty(&body["filter"]) => queue_command(body).switch("--all"),
        "queue_many" => queue_command(body).filter(&body["filter"]),
        "trace" => Line::new("trace").word(&body["email"]),
        "email_list" => Line::new("email list")
            .flag("--account", &body["filter"]["account"])
            .flag("--status", &body["filter"]["status"])
            .flag("--recipient", &body["filter"]["recipient"])
            .flag("--sender", &body["filter"]["sender"])
            .flag("--message-id", &body["filter"]["message_id"])
            .flag("--since", &body["filter"]["since"])
            .flag("--limit", &body["page"]["limit"])
            .flag("--cursor", &body["page"]["cursor"]),
        "destination_list" => Line::new("destination list"),
        "destination" => destination_command(body)?,
        "pool_list" => Line::new("pool list"),
        "pool_assign" if body["pool"].is_null() => Line::new("pool unassign").flag("--account", &body["account"]),
        "pool_assign" => Line::new("pool assign").flag("--account", &body["account"]).word(&body["pool"]),
        "pool_warm_up" => warm_up_command(body),
        "account_list" => {
            Line::new("account list").flag("--limit", &body["page"]["limit"]).flag("--cursor", &body["page"]["cursor"])
        }
        "account_show" => Line::new("account show").word(&body["account"]),
        "account_create" => {
            let line = Line::new("account create").flag("--email", &body["email"]).flag("--plan", &body["plan"]);
            if body["production"] == true { line.switch("--production") } else { line }
        }
        "account_update" => Line::new("account update")
            .word(&body["account"])
            .flag("--plan", &body["plan"])
            .flag("--production", &body["production"])
            .flag("--suspended", &body["suspended"]),
        "session_create" => Line::new("session create").flag("--account", &body["account"]),
        "user_reset" => Line::new("user reset").word(&body["email"]),
        "reply" => Line::new("reply").word(&body["reply"]).flag("--host", &body["host"]),
        _ => return None,
    };
    Some(line.0)
}

fn is_empty(filter: &Value) -> bool {
    filter.as_object().is_none_or(|filter| filter.values().all(Value::is_null))
}

/// `hold`, or `reroute by NAME`.
fn queue_command(body: &Value) -> Line {
    let order = body["order"].as_str().unwrap_or_default();
    match order.strip_prefix("reroute ") {
        Some("mx") => Line::new("queue reroute").switch("--mx"),
        Some("usual") => Line::new("queue reroute").switch("--usual"),
        Some(route) => {
            let name = route.strip_prefix("by ").unwrap_or(route);
            Line::new("queue reroute").flag("--smarthost", &Value::from(name))
        }
        None => Line::new("queue").word(&Value::from(order)),
    }
}

fn destination_command(body: &Value) -> Option<Line> {
    let order = &body["order"];
    let on = |verb: &str| {
        Line::new("destination").switch(verb).flag("--to", &body["to"]).flag("--mail-host", &body["mail_host"])
    };
    Some(if let Some(suspension) = order.get("suspend") {
        let line = match suspension["seconds"].as_u64() {
            Some(seconds) => on("suspend").flag("--for", &Value::from(duration::text(seconds))),
            None => on("suspend"),
        };
        line.flag("--because", &suspension["because"])
    } else if order == "resume" {
        on("resume")
    } else if let Some(pace) = order.get("pace") {
        on("pace").flag("--connections", &pace["connections_max"]).flag("--per-second", &pace["messages_per_second"])
    } else if let Some(route) = order.get("route") {
        match route {
            Value::Null => on("route").switch("--usual"),
            Value::String(_) => on("route").switch("--mx"),
            route => on("route").flag("--smarthost", &route["smarthost"]),
        }
    } else {
        return None;
    })
}

fn warm_up_command(body: &Value) -> Line {
    let line = Line::new("pool warm-up").word(&body["pool"]);
    match &body["warm_up"] {
        Value::Null => line.switch("--as-configured"),
        Value::String(_) => line.switch("--over"),
        since => line.flag("--since", &since["since"]),
    }
}

/// A command line under construction.
struct Line(String);

impl Line {
    fn new(command: &str) -> Self {
        Self(format!("postrider admin {command}"))
    }

    fn switch(mut self, word: &str) -> Self {
        self.0.push(' ');
        self.0.push_str(word);
        self
    }

    /// A positional argument.
    fn word(self, value: &Value) -> Self {
        match text(value) {
            Some(value) => self.switch(&shell_quoted(&value)),
            None => self,
        }
    }

    /// A flag with its value, unless that is null. Values that could be read as a flag are joined to the name.
    fn flag(self, name: &str, value: &Value) -> Self {
        match text(value) {
            Some(value) if value.starts_with('-') => self.switch(&format!("{name}={}", shell_quoted(&value))),
            Some(value) => self.switch(name).switch(&shell_quoted(&value)),
            None => self,
        }
    }

    fn filter(self, filter: &Value) -> Self {
        let older = filter["older_seconds"].as_u64().map_or(Value::Null, |seconds| duration::text(seconds).into());
        let line = self
            .flag("--to", &filter["to"])
            .flag("--account", &filter["account"])
            .flag("--from", &filter["from"])
            .flag("--class", &filter["class"])
            .flag("--older", &older)
            .flag("--before", &filter["accepted_before"])
            .flag("--attempts", &filter["attempts_min"]);
        if filter["held"] == true { line.switch("--held") } else { line }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let call = Call::new("reply").json(json!({"reply": "421 4.7.28 it's $(rm) `x`", "host": "-x"}));
        let line = command_line(&call).unwrap();
        assert_eq!(line, "postrider admin reply '421 4.7.28 it'\\''s $(rm) `x`' --host=-x");
        assert_eq!(command_line(&Call::new("sign_in")), None);
    }

    #[test]
    fn filters_become_flags() {
        let many =
            |filter| command_line(&Call::new("queue_many").json(json!({"order": "hold", "filter": filter}))).unwrap();
        assert_eq!(many(json!({})), "postrider admin queue hold --all");
        assert_eq!(
            many(json!({"to": "a.example", "older_seconds": 7200, "held": true})),
            "postrider admin queue hold --to a.example --older 2h --held"
        );
    }
}
