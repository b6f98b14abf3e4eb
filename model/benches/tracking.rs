//! Benchmarks of open and click tracking: rewriting the HTML of an email, which every tracked email needs.
//!
//! Three sizes: 2 KB with 3 links, 10 KB with 20 links, 100 KB with 100 links.

#![allow(missing_docs, reason = "criterion makes functions without")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use model::id::{AccountId, EmailId};
use model::signed_token::TokenKey;
use model::tracking::{LinkTracker, TrackingTarget, rewrite_html};

/// Builds a document of about `bytes` bytes with `links` links, with tables and inline styles as email has them.
fn document(bytes: usize, links: usize) -> String {
    let mut html = String::from("<!DOCTYPE html><html><head><style>td { padding: 4px }</style></head><body>");
    let between = bytes / links;
    for n in 0..links {
        let end = html.len() + between;
        let _ = write!(html, "<p><a href=\"https://shop.example/item?id={n}&amp;utm_source=mail\">x</a></p>");
        while html.len() < end {
            html.push_str(
                "<table role=\"presentation\"><tr><td style=\"color:#333\">Lorem ipsum dolor</td></tr></table>",
            );
        }
    }
    html + "</body></html>"
}

fn rewriting(c: &mut Criterion) {
    let key = TokenKey::new([7; 32]);
    let now = Timestamp::UNIX_EPOCH;
    let target = TrackingTarget::new(AccountId::new(now, 1), EmailId::new(now, 2), 1);
    let base = "https://track.example.com";
    let tracking = LinkTracker { key: &key, base, service: base, target };
    let mut group = c.benchmark_group("rewrite_html");
    for (bytes, links) in [(2_000, 3), (10_000, 20), (100_000, 100)] {
        let html = document(bytes, links);
        group.throughput(Throughput::Bytes(html.len() as u64));
        let name = BenchmarkId::from_parameter(format!("{bytes} bytes, {links} links"));
        group.bench_with_input(name, &html, |b, html| {
            b.iter(|| rewrite_html(black_box(html), &tracking, true, true));
        });
    }
    group.finish();
}

criterion_group!(benches, rewriting);
criterion_main!(benches);
