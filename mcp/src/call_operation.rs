//! `call_operation`: calls any operation by its id.

use serde_json::{Map, Value};

use crate::tool::{ToolError, ToolResult};
use crate::tool_session::{ToolSession, argument_refusal, read_only_refusal};

pub(crate) async fn call(
    session: &ToolSession<'_>,
    mut arguments: Map<String, Value>,
) -> Result<ToolResult, ToolError> {
    let Some(Value::String(id)) = arguments.remove("operation") else {
        return Ok(argument_refusal("`operation` is missing"));
    };
    let inner = match arguments.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(inner)) => inner,
        Some(_) => return Ok(argument_refusal("`arguments` must be an object")),
    };
    if let Some(name) = arguments.keys().next() {
        return Ok(argument_refusal(&format!("Unknown argument `{name}`: put it into `arguments`")));
    }
    let Some(operation) = session.catalog.operations().find(|operation| operation.id == id) else {
        return Ok(argument_refusal("There is no such operation: use find_operations to find one"));
    };
    if session.selection.read_only && !operation.only_reads() {
        return Ok(read_only_refusal(&id));
    }
    session.run(operation, inner).await
}
