# Tasks for contributors: `just` lists them. https://just.systems

export CARGO_PROFILE_DEV_DEBUG := env("CARGO_PROFILE_DEV_DEBUG", "none")

# list the tasks
default:
    @just --list --unsorted

# run everything on loopback: API, submission, MX and inbox
dev *OPTIONS:
    cargo run -- dev {{ OPTIONS }}

# formatting, tidiness, and the unit tests of the crates that differ from BASE
check BASE="main":
    cargo fmt --check
    tests/changed {{ quote(BASE) }}
    cargo test --quiet --test tidy

# everything that CI runs
test:
    tests/run

# end-to-end tests whose name contains NAME
story NAME:
    cargo test --test stories -- {{ NAME }}

# SMTP dialogs whose file or title contains NAME (with postrider's features, so that dependencies are not built twice)
dialog NAME:
    DIALOG={{ quote(NAME) }} cargo test -p smtp -p postrider --test dialogs

# write all golden files and the generated files of the SDKs anew, then look at `git diff`
golden:
    UPDATE_GOLDEN=1 cargo test --test contract
    UPDATE_GOLDEN=1 cargo test -p api --test http document::
    cargo run --quiet -p generate

# the benchmarks of one crate, or of one benchmark
bench CRATE *NAME:
    cargo bench -p {{ CRATE }} {{ if NAME == "" { "" } else { "--bench " + NAME } }}
