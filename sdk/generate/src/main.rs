//! `generate [--check] [--language NAME]`

use std::process::ExitCode;

use generate::error::GenerateError;
use generate::generator::{generate, languages, read_model, repository};
use generate::output;

const USAGE: &str = "usage: generate [--check] [--language NAME] [--model]
  --check           write nothing; list files that differ, are missing or left over, and exit with 1 if there are any
  --language NAME   only this language
  --model           print what templates get, as JSON";

#[derive(Default)]
struct Arguments {
    check: bool,
    print_model: bool,
    language: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, GenerateError> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--check" => arguments.check = true,
                "--model" => arguments.print_model = true,
                "--language" => {
                    let name = words.next().ok_or_else(|| GenerateError::Usage(USAGE.to_owned()))?;
                    arguments.language = Some(name);
                }
                _ => return Err(GenerateError::Usage(USAGE.to_owned())),
            }
        }
        Ok(arguments)
    }
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, GenerateError> {
    let root = repository();
    let model = read_model(&root)?;
    if arguments.print_model {
        println!("{}", serde_json::to_string_pretty(&model).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    let all = match &arguments.language {
        Some(language) => vec![language.clone()],
        None => languages(&root)?,
    };
    let mut is_current = true;
    for language in all {
        let (files, folder) = generate(&root, &model, &language)?;
        let differences = output::differences(&root, &files, folder.as_deref())?;
        if arguments.check {
            differences.iter().for_each(|one| println!("{one}"));
            is_current &= differences.is_empty();
        } else {
            output::write(&root, &files, &differences)?;
            println!("{language}: {} files, {} changed", files.len(), differences.len());
        }
    }
    Ok(if is_current { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
