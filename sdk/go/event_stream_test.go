package postrider

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

const frame = "id: 7\nevent: email.sent\ndata: {\"id\":\"evt_1\",\"type\":\"email.sent\",\ndata: \"created_at\":\"\",\"data\":{\"email_id\":\"msg_1\"}}\n\n"

func stream(content string) http.HandlerFunc { return text(200, "text/event-stream", content) }

func TestTheStreamResumesAfterTheLastEvent(t *testing.T) {
	server := serve(t,
		stream(": connected\nretry: 2000\n\n"+frame+"id: 8\n\nid: 9\ndata: {\"unfini"),
		raw("", false, true), fails(503, "service_unavailable"), text(504, "text/html", "<html>"),
		stream("\r\n"+strings.ReplaceAll(strings.Replace(frame, "id: 7", "id: 9", 1), "\n", "\r\n")),
		fails(401, "unauthorized"),
	)
	client, _ := clientOf(t, server.URL)
	events := client.WebhookEvents.Stream(context.Background(), &StreamParams{Types: []WebhookEventType{"email.sent", "email.failed"}, After: "5"})
	defer events.Close()
	for _, cursor := range []string{"7", "9"} {
		if !events.Next() {
			t.Fatal(events.Err())
		}
		event := events.Value()
		if data, ok := event.Data.(*EmailSentData); !ok || event.Cursor != cursor || event.ID != "evt_1" || data.EmailID != "msg_1" {
			t.Fatalf("%+v", event)
		}
	}
	var unauthorized *AuthenticationError
	if events.Next() || !errors.As(events.Err(), &unauthorized) {
		t.Fatal(events.Err())
	}
	for i, want := range []string{"5", "8", "8", "8", "8", "9"} {
		request := server.requests[i]
		if request.Header.Get("Last-Event-Id") != want || request.URL.RawQuery != "types=email.sent%2Cemail.failed" || request.Header.Get("Accept") != "text/event-stream" {
			t.Error(i, request.URL, request.Header)
		}
	}
}

func TestAStreamThatCannotBegin(t *testing.T) {
	server := serve(t, text(503, "text/html", "<html>"))
	client, pauses := clientOf(t, server.URL)
	events := client.WebhookEvents.Stream(context.Background(), nil)
	var unexpected *UnexpectedResponseError
	if events.Next() || !errors.As(events.Err(), &unexpected) || len(*pauses) != 2 {
		t.Fatal(events.Err(), *pauses)
	}
	for _, answer := range []http.HandlerFunc{answers(200, "{}"), stream("data: no JSON\n\n"), stream("data: " + strings.Repeat("x", eventBytesMax) + "\n\n")} {
		client, _ := clientOf(t, serve(t, answer).URL)
		events := client.WebhookEvents.Stream(context.Background(), nil)
		if events.Next() || !errors.As(events.Err(), &unexpected) {
			t.Fatal(events.Err())
		}
	}
}

func TestTheSizeOfAnEvent(t *testing.T) {
	sized := func(size int) string {
		return `data: {"id":"evt_1","type":"email.sent","data":{"text":"` + strings.Repeat("x", size) + "\"}}\n\n"
	}
	client, _ := clientOf(t, serve(t, stream(sized(1040000)+sized(1040000)+sized(1060000))).URL)
	events := client.WebhookEvents.Stream(context.Background(), nil)
	defer events.Close()
	var unexpected *UnexpectedResponseError
	if !events.Next() || !events.Next() || events.Next() || !errors.As(events.Err(), &unexpected) {
		t.Fatal(events.Err())
	}
}

func TestAClosedStreamEnds(t *testing.T) {
	server := serve(t, raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+frame, true, false))
	client, _ := clientOf(t, server.URL)
	for name, end := range map[string]func(*EventStream, context.CancelFunc){
		"close":  func(events *EventStream, _ context.CancelFunc) { events.Close() },
		"cancel": func(_ *EventStream, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		events := client.WebhookEvents.Stream(ctx, nil)
		if !events.Next() {
			t.Fatal(events.Err())
		}
		go end(events, cancel)
		var cancelled *CancelledError
		if events.Next() || !errors.As(events.Err(), &cancelled) {
			t.Fatal(name, events.Err())
		}
		cancel()
	}
}

// A connection that is silent is lost: here its timer runs out at once.
func TestASilentStreamReconnects(t *testing.T) {
	server := serve(t, raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+frame, true, false), stream(frame))
	client, _ := clientOf(t, server.URL)
	events := client.WebhookEvents.Stream(context.Background(), nil)
	defer events.Close()
	if !events.Next() {
		t.Fatal(events.Err())
	}
	events.drop() // what the timer does
	if !events.Next() || server.seen() != 2 {
		t.Fatal(events.Err())
	}
}

func TestWaitForEmail(t *testing.T) {
	server := serve(t, answers(200, `{"total":0,"messages":[]}`), answers(200, `{"total":1,"messages":[{"id":4}]}`), answers(200, `{"id":4,"to":["a@example.net"],"text":null,"html":"<p>","links":[]}`))
	client, _ := clientOf(t, server.URL)
	email, err := client.Dev.WaitForEmail(context.Background(), WaitForEmailParams{To: String("a+b@example.net")})
	if err != nil || email.ID != 4 || email.HTML != "<p>" || email.Extra["links"] == nil {
		t.Fatal(email, err)
	}
	query := server.requests[0].URL.Query()
	if query.Get("to") != "a+b@example.net" || query.Get("limit") != "1" || !strings.HasSuffix(query.Get("wait"), "ms") || query.Has("subject") {
		t.Fatal(query)
	}
	if server.requests[2].URL.Path != "/messages/4" {
		t.Fatal(server.requests[2].URL)
	}
	client, _ = clientOf(t, serve(t, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }).URL)
	for _, one := range []struct{ context, timeout time.Duration }{{time.Hour, 50 * time.Millisecond}, {50 * time.Millisecond, time.Hour}} {
		ctx, cancel := context.WithTimeout(context.Background(), one.context)
		_, err = client.Dev.WaitForEmail(ctx, WaitForEmailParams{Timeout: one.timeout})
		cancel()
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || !strings.Contains(err.Error(), "No such email came within ") || strings.Contains(err.Error(), "1h") {
			t.Fatal(err)
		}
	}
}
