//! Benchmarks of compiling MJML: a typical source, and sources that make a careless search read a long rest again and
//! again.

#![allow(missing_docs, reason = "criterion makes functions without")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// A source with one column.
fn in_column(content: &str) -> String {
    format!("<mjml><mj-body><mj-section><mj-column>{content}</mj-column></mj-section></mj-body></mjml>")
}

/// A newsletter of about 20 KB.
fn newsletter() -> String {
    let section = "<mj-section padding=\"20px\"><mj-column>\
                   <mj-image src=\"https://shop.example/{{image}}\" width=\"200px\" /></mj-column>\
                   <mj-column><mj-text font-size=\"20px\">{{title}}</mj-text>\
                   <mj-text>Words and more words, as they are written in a mail to a customer.</mj-text>\
                   <mj-button href=\"https://shop.example/{{path}}\">Open</mj-button></mj-column></mj-section>";
    format!("<mjml><mj-body>{}</mj-body></mjml>", section.repeat(50))
}

fn compiling(c: &mut Criterion) {
    let padding = " ".repeat(440 << 10);
    let mut group = c.benchmark_group("compile");
    for (name, source) in [
        ("newsletter", newsletter()),
        ("contents before a comment", in_column(&format!("{}<!--{padding}-->", "<mj-raw>x</mj-raw>".repeat(1_900)))),
        (
            "tags before a comment",
            in_column(&format!("<mj-raw>{}</mj-raw><!--{padding}-->", "{{!<mj-}}".repeat(2_000))),
        ),
    ] {
        group.throughput(Throughput::Bytes(source.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &source, |b, source| {
            b.iter(|| mjml::compile(black_box(source)));
        });
    }
    group.finish();
}

criterion_group!(benches, compiling);
criterion_main!(benches);
