//! Prints the answer of `tools/list`: `cargo run -p mcp --example list_tools -- [TOOLSETS]`.

use mcp::catalog::Catalog;
use mcp::toolset::ToolSelection;

fn main() -> Result<(), String> {
    let mut selection = ToolSelection::default();
    for names in std::env::args().skip(1) {
        selection.add(&names)?;
    }
    let tools: Vec<_> = Catalog::get().selected(&selection).map(|tool| tool.entry(&selection)).collect();
    println!("{}", serde_json::json!({"tools": tools}));
    Ok(())
}
