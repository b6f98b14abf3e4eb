//! Writes all documents into a directory, to work on the style sheet without a server:
//! `cargo run -p pages --example write -- DIRECTORY [BASE_URL]`.

use std::path::PathBuf;

use pages::documentation::Documentation;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| "target/docs".into()));
    let base_url = arguments.next().unwrap_or_else(|| "https://mail.example.com".into());
    for (path, document) in Documentation::new(&base_url).documents().iter() {
        let is_html = document.media_type.starts_with("text/html");
        let file = directory.join(format!("{}{}", path.trim_start_matches('/'), if is_html { ".html" } else { "" }));
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&file, &document.body)?;
        println!("{:>8} {:>6} {path}", document.body.len(), document.gzip.len());
    }
    Ok(())
}
