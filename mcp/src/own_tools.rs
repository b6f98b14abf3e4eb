//! Definitions of the tools that are no operation of the API.

use serde_json::json;

use crate::tool::{ToolAnnotations, ToolDefinition};
use crate::toolset::TOOLSETS;

pub(crate) fn explain_email() -> ToolDefinition {
    ToolDefinition {
        name: "explain_email".into(),
        description: "Explain what happened to an email, recipient by recipient: where it is and why, what the mail \
            host replied and what that means, the next attempt, and what to do."
            .into(),
        input_schema: json!({
            "type": "object", "properties": {"id": {"type": "string", "description": "The email's id (msg_…)"}},
            "required": ["id"],
        }),
        output_schema: Some(json!({"type": "object", "properties": {
            "id": {"type": "string"}, "status": {"type": "string"},
            "recipients": {"type": "array", "items": {"type": "object", "properties": {
                "email": {"type": "string"}, "status": {"type": "string"}, "standing": {"type": "string"},
                "what_happened": {"type": "string"}, "why": {"type": ["string", "null"]},
                "far_end_said": {"type": ["string", "null"]}, "next_try_at": {"type": ["string", "null"]},
                "what_to_do": {"type": "string"}, "next_tools": {"type": "array"},
            }}},
            "attempts": {"type": "array"},
        }})),
        annotations: Some(ToolAnnotations { read_only: true, destructive: false, idempotent: true, open_world: false }),
    }
}

pub(crate) fn diagnose_domain() -> ToolDefinition {
    ToolDefinition {
        name: "diagnose_domain".into(),
        description: "Report whether a domain can send, which DNS records are wrong and why they matter, what \
            receivers report (DMARC), and what to publish. To look the records up again, use verify_domain."
            .into(),
        input_schema: json!({
            "type": "object", "properties": {"id_or_name": {"type": "string", "description": "example.com or dom_…"}},
            "required": ["id_or_name"],
        }),
        output_schema: Some(json!({"type": "object", "properties": {
            "name": {"type": "string"}, "can_send": {"type": "boolean"}, "summary": {"type": "string"},
            "findings": {"type": "array", "items": {"type": "object", "properties": {
                "severity": {"type": "string"}, "what": {"type": "string"}, "why": {"type": "string"},
                "what_to_do": {"type": "string"}, "publish": {"type": ["object", "null"]}, "found": {"type": "array"},
            }}},
            "dmarc": {"type": ["object", "null"]},
        }})),
        annotations: Some(ToolAnnotations { read_only: true, destructive: false, idempotent: true, open_world: false }),
    }
}

pub(crate) fn find_operations() -> ToolDefinition {
    let sets: Vec<&str> = TOOLSETS.iter().map(|(name, _)| *name).collect();
    ToolDefinition {
        name: "find_operations".into(),
        description: format!(
            "Find any API operation by words (for example \"rotate dkim\"), with its arguments for call_operation. To \
             list a toolset, search for its name: {}.",
            sets.join(", ")
        ),
        input_schema: json!({
            "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"],
        }),
        output_schema: Some(json!({"type": "object", "properties": {"operations": {"type": "array"}}})),
        annotations: Some(ToolAnnotations { read_only: true, destructive: false, idempotent: true, open_world: false }),
    }
}

pub(crate) fn call_operation() -> ToolDefinition {
    ToolDefinition {
        name: "call_operation".into(),
        description:
            "Call an operation that find_operations found. Its `effect` tells whether it changes, sends or deletes \
             something."
                .into(),
        input_schema: json!({
            "type": "object",
            "properties": {"operation": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["operation"],
        }),
        output_schema: None,
        annotations: Some(ToolAnnotations { read_only: false, destructive: true, idempotent: false, open_world: true }),
    }
}
