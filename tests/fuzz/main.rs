//! A short smoke test of the fuzz targets: valid inputs, mutated by a generator with a fixed seed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "shared with fuzz/, a separate crate")]
mod targets;

/// Valid inputs that reach deep into the code, to be mutated.
const SEEDS: &[&[u8]] = &[
    b"EHLO x\r\nMAIL FROM:<a@b.example> SIZE=10\r\nRCPT TO:<c@d.example> NOTIFY=NEVER\r\nDATA\r\n.\r\n..\r\n.\r\nQUIT\r\n",
    b"EHLO x\r\nMAIL FROM:<> BODY=BINARYMIME\r\nRCPT TO:<\"a b\"@d.example>\r\nBDAT 3\r\na\nbBDAT 2 LAST\r\n\r\nRSET\r\n",
    b"HELO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<postmaster>\r\nDATA\r\nhi\n.\r\nx\r\n.\r\n",
    b"\"a\\\"b\"@b\xc3\xbccher.example",
    b"Ada \"L\" <ada@example.com>",
    b"From: =?utf-8?q?x?= <a@b.example>\r\nBcc: x@y.example,\r\n z@y.example\r\nSubject: x\r\n\r\nbody\r\n",
    b"Service-Tags: {\"a\": \"b\"}\r\nSERVICE-category : product\r\nSubject: =?utf-8?q?{{unsubscribe=5Furl}}?=\r\n\
      Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: text/html\r\n\
      Content-Transfer-Encoding: base64\r\n\r\ne3t1bnN1YnNjcmliZV91cmx9fQ==\r\n--a\r\n\
      Content-Transfer-Encoding: quoted-printable\r\n\r\n=7B{unsubscribe=5Furl}}\r\n--a--\r\n",
    b"5.7.509 no",
    b"From: =?iso-8859-1?q?J=F6?= <a@b.example>, c@d.example\r\nAuthentication-Results: mx.example; spf=pass\r\n\
      Subject: =?utf-8?b?w7w=?=\r\nReferences: <a@b> <c@d>\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n\
      --a\r\nContent-Type: text/html; charset=koi8-r\r\n\r\n<p>x</p>\r\n--a\r\nContent-Type: message/rfc822\r\n\r\n\
      Subject: in\r\n\r\nx\r\n--a\r\nContent-Type: a/b; name*0*=utf-8''x%20; name*1=y\r\n\
      Content-Transfer-Encoding: base64\r\n\r\neA==\r\n--a--\r\n",
    b"<!--[if mso]><a href=x><![endif]--><a class='b' href=\"https://a.example/?b=1&amp;c=2\">x</a></body>",
    b"<style>a{}</style><a data-track=off href=https://a.example/><area href = 'HTTP://b.example/&#38;\xc3\xa9'></html>",
    b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 587\r\nEHLO x\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0d\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x02\x4b\x04EHLO x\r\n",
    b"hostname = \"a.example\"\n[api]\nlisten = [\"127.0.0.1:1\"]\n[delivery]\nretry = [\"1m\"]\n",
    b"Hi {{a}} {{{a}}}\n{{#each b as |c n|}}{{#if c.a}}{{@index}}{{else if ../a}}{{c}}{{/if}}{{else}}{{! x }}{{/each}} \\{{a}}",
    b"<mjml><mj-head><mj-attributes><mj-all color='{{c}}'/></mj-attributes></mj-head><mj-body>{{#if a}}<mj-section>\n\
      <mj-column width=\"50%\"><mj-text>{{a}}</mj-text></mj-column></mj-section>{{/if}}<!-- x --></mj-body></mjml>",
    b"<mj-image src=\"{{a}}\" width=\"10px\" /><mj-carousel><mj-carousel-image src=\"b\"/></mj-carousel><mj-raw>{{#if a}}</mj-raw>\
      <mj-button padding=\"1px 2px\" href='{{#if b}}c{{/if}}'>\xc3\xa9</mj-button>{{else}}<mj-spacer height='1px' />{{/if}}",
    b"From: MAILER-DAEMON@x.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nNo.\r\n--b\r\n\
      Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; a@b.example\r\n\
      Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550-5.1.1 no\r\n such user\r\n--b--\r\n",
    b"Subject: failure notice\r\n\r\nHi. This is the qmail-send program.\r\n<a@b.example>:\r\nhost b.example said: 550 5.1.1 no\r\n",
    b"Content-Type: multipart/report; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: message/feedback-report\r\n\r\n\
      Feedback-Type: abuse\r\nArrival-Date: Sat, 21 Nov 2026 08:00:00 +0000\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\n\
      Return-Path: <b-01jd3k5m7n9pqrstvwxyz01234-0-abcdefgh@rp.b.example>\r\n--b--\r\n",
];
const ROUNDS: u32 = 12_000;

/// A xorshift generator: no dependency, and the same numbers everywhere.
struct RandomSource(u64);

impl RandomSource {
    fn number_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn mutate(&mut self, seed: &[u8]) -> Vec<u8> {
        const PIECES: &[&[u8]] = &[
            b"\r",
            b"\n",
            b"\0",
            b".\r\n",
            b"\r\n.\r\n",
            b"<",
            b">",
            b"@",
            b"\"",
            b"\\",
            b"\xff",
            b":",
            b"=",
            b"{{",
            b"}}",
            b"{{#each a}}",
            b"{{/if}}",
        ];
        let mut bytes = seed.to_vec();
        for _ in 0..=self.number_below(4) {
            let at = self.number_below(bytes.len() + 1);
            match self.number_below(4) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = u8::try_from(self.number_below(256)).unwrap(),
                2 if at < bytes.len() => {
                    bytes.remove(at);
                }
                _ => {
                    let piece = PIECES[self.number_below(PIECES.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
            }
        }
        bytes
    }
}

#[test]
fn no_fuzz_target_panics_on_mutated_inputs() {
    let mut random = RandomSource(0x9e37_79b9_7f4a_7c15);
    for (name, target) in targets::TARGETS {
        for seed in SEEDS {
            target(seed);
            for _ in 0..ROUNDS / 8 {
                let bytes = random.mutate(seed);
                let result = std::panic::catch_unwind(|| target(&bytes));
                assert!(result.is_ok(), "{name} broke on {:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
