package postrider

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	vectorSecret  = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	vectorPayload = `{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST","email_id":"msg_01TEST","status":"delivered"}}`
	vectorHex     = "73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7"
	vectorBase64  = "leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU="
)

var vectorTime = time.Unix(1767261601, 0)

func TestTheVectorOfBothSignatures(t *testing.T) {
	made, err := GenerateTestHeader([]byte(vectorPayload), vectorSecret, vectorTime, "evt_01TEST")
	if err != nil || made.Get("Service-Signature") != "t=1767261601,v1="+vectorHex || made.Get("webhook-signature") != "v1,"+vectorBase64 {
		t.Fatal(made, err)
	}
	for _, header := range []http.Header{
		{"Service-Signature": {"t=1767261601,v1=" + vectorHex}},
		{"service-signature": {"t=1767261601,v1=00,v1=nonsense,v1=" + vectorHex}},
		{"Service-Signature": {"t=1767261601,v1=00", "t=1767261601,v1=" + vectorHex}},
		{"Webhook-Id": {"evt_01TEST"}, "Webhook-Timestamp": {"1767261601"}, "Webhook-Signature": {"v1,AAAA", "v1," + vectorBase64}},
		{"Webhook-Id": {"evt_01TEST"}, "Webhook-Timestamp": {"1767261601"}, "Webhook-Signature": {"v1,AAAA,v1," + vectorBase64}},
		{"WEBHOOK-ID": {"evt_01TEST"}, "webhook-timestamp": {"1767261601"}, "Webhook-Signature": {"v2,AA v1,AA== v1," + vectorBase64}},
		made,
	} {
		event, err := ConstructEventAt([]byte(vectorPayload), header, []string{"whsec_AAAA", vectorSecret}, 0, vectorTime)
		if err != nil {
			t.Fatal(header, err)
		}
		data, ok := event.Data.(*EmailDeliveredData)
		if !ok || data.EmailID != "msg_01TEST" || event.ID != "evt_01TEST" || event.Type != WebhookEventTypeEmailDelivered {
			t.Fatalf("%+v", event)
		}
	}
}

func TestWrongSignatures(t *testing.T) {
	good := http.Header{"Webhook-Id": {"evt_01TEST"}, "Webhook-Timestamp": {"1767261601"}, "Webhook-Signature": {"v1," + vectorBase64}}
	empty := base64.StdEncoding.EncodeToString(sum(nil, "evt_01TEST.1767261601.", []byte(vectorPayload)))
	signedWithNothing := http.Header{"Webhook-Id": {"evt_01TEST"}, "Webhook-Timestamp": {"1767261601"}, "Webhook-Signature": {"v1," + empty}}
	for name, one := range map[string]struct {
		payload string
		header  http.Header
		secret  string
	}{
		"no header":     {vectorPayload, http.Header{}, vectorSecret},
		"other body":    {vectorPayload + " ", good, vectorSecret},
		"other secret":  {vectorPayload, good, "whsec_AAAA"},
		"empty key":     {vectorPayload, signedWithNothing, "whsec_"},
		"bad secret":    {vectorPayload, good, "whsec_é"},
		"other id":      {vectorPayload, http.Header{"Webhook-Id": {"evt_2"}, "Webhook-Timestamp": good["Webhook-Timestamp"], "Webhook-Signature": good["Webhook-Signature"]}, vectorSecret},
		"other time":    {vectorPayload, http.Header{"Service-Signature": {"t=1767261602,v1=" + vectorHex}}, vectorSecret},
		"nonsense":      {vectorPayload, http.Header{"Service-Signature": {"nonsense"}, "Webhook-Signature": {"v1,é"}}, vectorSecret},
		"short":         {vectorPayload, http.Header{"Service-Signature": {"t=1767261601,v1=ff"}}, vectorSecret},
		"two times":     {vectorPayload, http.Header{"Service-Signature": {"t=1,v1=00", "t=1767261601,v1=" + vectorHex}}, vectorSecret},
		"two ids":       {vectorPayload, http.Header{"Webhook-Id": {"evt_01TEST", "evt_01TEST"}, "Webhook-Timestamp": good["Webhook-Timestamp"], "Webhook-Signature": good["Webhook-Signature"]}, vectorSecret},
		"empty headers": {vectorPayload, http.Header{"Service-Signature": {}}, vectorSecret},
	} {
		_, err := ConstructEventAt([]byte(one.payload), one.header, []string{one.secret}, 0, vectorTime)
		var signature *SignatureError
		if !errors.As(err, &signature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var configuration *ConfigurationError
	for _, secrets := range [][]string{nil, {""}, {" "}} {
		if _, err := ConstructEvent(nil, nil, secrets, 0); !errors.As(err, &configuration) {
			t.Error(secrets, err)
		}
	}
	if _, err := ConstructEventAt([]byte(vectorPayload), good, []string{"", vectorSecret + "\n"}, 0, vectorTime); err != nil {
		t.Error(err)
	}
}

func TestWrongClocks(t *testing.T) {
	header := http.Header{"Service-Signature": {"t=1767261601,v1=" + vectorHex}}
	for seconds, fits := range map[int]bool{-301: false, -300: true, 300: true, 301: false} {
		now := vectorTime.Add(time.Duration(seconds) * time.Second)
		_, err := ConstructEventAt([]byte(vectorPayload), header, []string{vectorSecret}, DefaultTolerance, now)
		var timestamp *TimestampError
		var signature *SignatureError
		if fits != (err == nil) || !fits && (!errors.As(err, &timestamp) || !errors.As(err, &signature)) {
			t.Error(seconds, err)
		}
		if !fits && !(strings.Contains(err.Error(), "2026-01-01T10:00:01Z") && strings.Contains(err.Error(), now.UTC().Format(time.RFC3339))) {
			t.Error(err)
		}
	}
}

// A replayed or delayed signature of one family does not hide a current one of the other.
func TestOneCurrentSignatureSuffices(t *testing.T) {
	old, _ := GenerateTestHeader([]byte(vectorPayload), vectorSecret, vectorTime, "evt_9")
	current, _ := GenerateTestHeader([]byte(vectorPayload), vectorSecret, vectorTime.Add(time.Hour), "evt_9")
	for _, family := range [][]string{{"Service-Signature"}, {"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}} {
		header := old.Clone()
		for _, name := range family {
			header[name] = current[name]
		}
		for hours, fits := range map[time.Duration]bool{0: true, 1: true, 2: false} {
			now := vectorTime.Add(hours * time.Hour)
			_, err := ConstructEventAt([]byte(vectorPayload), header, []string{vectorSecret}, 0, now)
			var timestamp *TimestampError
			if fits != (err == nil) || !fits && !errors.As(err, &timestamp) {
				t.Error(family, hours, err)
			}
		}
	}
}

func TestEventsOfNewerServers(t *testing.T) {
	for _, payload := range []string{
		`{"type":"moon.landed","created_at":"","data":{"a":1}}`,
		`{"type":"email.delivered","created_at":"","data":{"email_id":{"a":1}}}`,
	} {
		header, _ := GenerateTestHeader([]byte(payload), vectorSecret, vectorTime, "evt_9")
		event, err := ConstructEventAt([]byte(payload), header, []string{vectorSecret}, 0, vectorTime)
		if err != nil || event.ID != "evt_9" || len(event.Data.(map[string]any)) != 1 {
			t.Error(event, err)
		}
	}
	for _, payload := range []string{
		"not JSON", "[]", `{"data":{}}`, `{"type":5,"data":{}}`, `{"type":"email.sent"}`, `{"type":"email.sent","data":null}`, `{"type":"email.sent","data":[]}`,
	} {
		header, _ := GenerateTestHeader([]byte(payload), vectorSecret, vectorTime, "evt_9")
		var signature *SignatureError
		if _, err := ConstructEventAt([]byte(payload), header, []string{vectorSecret}, 0, vectorTime); !errors.As(err, &signature) {
			t.Error(payload, err)
		}
	}
}

// Each event of the API's reference fits its struct, without fields that the struct does not know.
func TestEventsAreTyped(t *testing.T) {
	for _, event := range readOperations(t).WebhookEvents {
		parsed, err := parseEvent(event.Example)
		if err != nil {
			t.Error(event.Type, err)
			continue
		}
		if _, unknown := parsed.Data.(map[string]any); unknown {
			t.Error(event.Type, "has no struct")
		}
		written, err := json.Marshal(parsed)
		if err != nil || !sameJSON(t, written, event.Example) {
			t.Errorf("%s\n%s\n%s %v", event.Type, written, event.Example, err)
		}
	}
}

func TestTheHandler(t *testing.T) {
	var got *WebhookEvent
	var failure error
	handler := WebhookHandler([]string{vectorSecret}, func(_ context.Context, event *WebhookEvent) error {
		got = event
		return failure
	})
	deliver := func(method string, signed time.Time) int {
		request := httptest.NewRequest(method, "/", bytes.NewReader([]byte(vectorPayload)))
		request.Header, _ = GenerateTestHeader([]byte(vectorPayload), vectorSecret, signed, "evt_1")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	if code := deliver("GET", time.Now()); code != 405 || got != nil {
		t.Error(code)
	}
	if code := deliver("POST", vectorTime); code != 401 || got != nil {
		t.Error(code)
	}
	if code := deliver("POST", time.Now()); code != 204 || got == nil {
		t.Error(code)
	}
	handler = WebhookHandler([]string{""}, func(context.Context, *WebhookEvent) error { return nil })
	if code := deliver("POST", time.Now()); code != 500 {
		t.Error("without a secret, the server must deliver the webhook again", code)
	}
	handler = WebhookHandler([]string{vectorSecret}, func(context.Context, *WebhookEvent) error { return failure })
	failure = errors.New("the database is away")
	if code := deliver("POST", time.Now()); code != 500 {
		t.Error(code)
	}
}
