//! Fuzz target `mjml` (tests/fuzz/targets.rs).
#![no_main]

#[path = "../../tests/fuzz/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::mjml(bytes));
