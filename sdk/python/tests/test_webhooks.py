"""Signatures of webhooks."""

import base64
import hmac
import unittest

import postrider
from postrider import webhooks

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
TIME = 1767261601
BODY = (
    '{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z",'
    '"data":{"event_id":"evt_01TEST","email_id":"msg_01TEST","status":"delivered"}}'
)
SERVICE = "t=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7"
STANDARD = {
    "webhook-id": "evt_01TEST",
    "webhook-timestamp": "1767261601",
    "webhook-signature": "v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=",
}
OTHER = "whsec_" + "A" * 43 + "="


def construct(headers, payload=BODY, secret=SECRET, now=TIME, **options):
    return webhooks.construct_event(payload, headers, secret, now=now, **options)


class Signatures(unittest.TestCase):
    def refused(self, error_class, *arguments, **keywords):
        with self.assertRaises(error_class) as caught:
            construct(*arguments, **keywords)
        self.assertIs(type(caught.exception), error_class)
        self.assertNotIn(SECRET[6:], str(caught.exception))
        return str(caught.exception)

    def test_vector(self):
        headers = webhooks.generate_test_header(BODY, SECRET, timestamp=TIME, id="evt_01TEST")
        self.assertEqual(headers, {"service-signature": SERVICE, **STANDARD})
        for given in ({"Service-Signature": SERVICE}, STANDARD, headers):
            self.assertEqual(construct(given)["data"]["email_id"], "msg_01TEST")
            self.assertEqual(construct(given, BODY.encode())["type"], "email.delivered")

    def test_headers_of_frameworks(self):
        for headers in ({"SERVICE-SIGNATURE": SERVICE}, {"HTTP_SERVICE_SIGNATURE": SERVICE}, [(b"service-signature", SERVICE.encode())],
                        {"service-signature": [SERVICE]}, [("Service-Signature", SERVICE)]):  # fmt: skip
            self.assertEqual(construct(headers)["type"], "email.delivered")

    def test_repeated_headers(self):
        wrong, repeated = SERVICE[:-1] + "8", STANDARD["webhook-signature"]
        for headers in ([("Service-Signature", wrong), ("service-signature", SERVICE)], {"service-signature": [SERVICE, wrong]},
                        {**STANDARD, "webhook-signature": ["v1,AAAA", repeated]}, {**STANDARD, "webhook-signature": f"v1,AAAA,{repeated}"},
                        {"HTTP_SERVICE_SIGNATURE": f"{wrong},{SERVICE}"}):  # fmt: skip
            self.assertEqual(construct(headers)["type"], "email.delivered")
        for name in ("webhook-id", "webhook-timestamp"):
            self.refused(postrider.SignatureError, {**STANDARD, name: [STANDARD[name]] * 2})
        self.refused(postrider.SignatureError, {"service-signature": ["t=1,v1=00", SERVICE]})

    def test_several_secrets_and_signatures(self):
        headers = {"service-signature": SERVICE}
        self.assertEqual(construct(headers, secret=["", f" {SECRET}\n"])["type"], "email.delivered")
        self.assertEqual(construct(headers, secret=[OTHER, SECRET])["type"], "email.delivered")
        rotated = SERVICE.replace(",v1", ",v1=" + "0" * 64 + ",v1")
        self.assertEqual(construct({"service-signature": rotated})["type"], "email.delivered")
        both = {**STANDARD, "webhook-signature": "v1,AAAA v2,x " + STANDARD["webhook-signature"]}
        self.assertEqual(construct(both)["type"], "email.delivered")

    def test_one_valid_family_suffices(self):
        self.assertEqual(construct({**STANDARD, "service-signature": "t=1,v1=00"})["type"], "email.delivered")
        self.assertEqual(construct({"service-signature": SERVICE, "webhook-id": "x"})["type"], "email.delivered")

    def test_wrong_signatures(self):
        for headers in ({}, {"service-signature": ""}, {"service-signature": "v1=00"}, {"service-signature": "t=x,v1=00"},
                        {"service-signature": SERVICE[:-1] + "8"}, {"service-signature": f"t={TIME},v1="}, {"service-signature": f"t={TIME}"},
                        {"service-signature": SERVICE.replace("t=1767261601", "t=1767261602")},
                        {**STANDARD, "webhook-id": "evt_02TEST"}, {**STANDARD, "webhook-signature": "v1,"}, {**STANDARD, "webhook-signature": "v1a"},
                        {"service-signature": f"t={TIME},v1=\u00e9"}, {"service-signature": "t=" + "9" * 5000 + ",v1=00"}):  # fmt: skip
            self.refused(postrider.SignatureError, headers)
        self.refused(postrider.SignatureError, {"service-signature": SERVICE}, BODY + " ")
        self.refused(postrider.SignatureError, {"service-signature": SERVICE}, secret=OTHER)
        self.refused(postrider.SignatureError, {**STANDARD, "webhook-signature": "v1,"}, secret="whsec_not base64")
        signed_with_nothing = "v1," + base64.b64encode(hmac.digest(b"", f"e.{TIME}.{BODY}".encode(), "sha256")).decode()
        headers = {"webhook-id": "e", "webhook-timestamp": str(TIME), "webhook-signature": signed_with_nothing}
        self.refused(postrider.SignatureError, headers, secret="whsec_")
        for secret in ("", " ", None, [None], [""]):
            self.refused(postrider.ConfigurationError, {"service-signature": SERVICE}, secret=secret)
        self.refused(postrider.ConfigurationError, {"service-signature": SERVICE}, secret=[])

    def test_wrong_clock(self):
        for now in (TIME - 301, TIME + 301, 0):
            message = self.refused(postrider.TimestampError, {"service-signature": SERVICE}, now=now)
            self.assertIn("2026-01-01T10:00:01Z", message)
        for now in (TIME - 300, TIME + 300):
            construct({"service-signature": SERVICE}, now=now)
        construct({"service-signature": SERVICE}, now=TIME + 400, tolerance=500)
        self.assertTrue(issubclass(postrider.TimestampError, postrider.SignatureError))

    def test_wrong_signature_says_nothing_of_the_clock(self):
        self.refused(postrider.SignatureError, {"service-signature": SERVICE}, BODY + " ", now=0)

    def test_unknown_types_pass(self):
        body = '{"type":"moon.landed","created_at":"2026","data":{"x":1}}'
        event = construct(webhooks.generate_test_header(body, SECRET, timestamp=TIME), body)
        self.assertEqual((event["type"], event["data"]), ("moon.landed", {"x": 1}))

    def test_bodies_that_are_no_events(self):
        for body in ("", "[]", "x", "[" * 100_000, '{"data":{}}', '{"type":5,"data":{}}', '{"type":"email.sent"}',
                     '{"type":"email.sent","data":null}', '{"type":"email.sent","data":[]}'):  # fmt: skip
            self.refused(postrider.SignatureError, webhooks.generate_test_header(body, SECRET, timestamp=TIME), body)

    def test_functions_of_the_client(self):
        client = postrider.Postrider("rnl_x", "https://example.com")
        headers = client.webhooks.generate_test_header(BODY, SECRET)
        self.assertEqual(client.webhooks.construct_event(BODY, headers, SECRET)["type"], "email.delivered")
