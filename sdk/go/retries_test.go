package postrider

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRetriesKeepTheIdempotencyKey(t *testing.T) {
	// The lost connection comes first: net/http itself repeats a request that it lost on a connection used before.
	server := serve(t, raw("", false, true), fails(503, "service_unavailable"), answers(200, `{"id":"msg_1","status":"sent"}`))
	client, pauses := clientOf(t, server.URL)
	sent, err := send(client)
	if err != nil || sent.ID != "msg_1" || sent.Status != SentStatusSent {
		t.Fatal(sent, err)
	}
	key := server.requests[0].Header.Get("Idempotency-Key")
	for i, request := range server.requests {
		if len(key) != 36 || request.Header.Get("Idempotency-Key") != key || server.bodies[i] != server.bodies[0] {
			t.Fatal("the attempts differ")
		}
	}
	if !strings.Contains(server.bodies[0], `"subject":"<Hi>"`) {
		t.Fatal(server.bodies[0])
	}
	if want := []time.Duration{500 * time.Millisecond, time.Second}; !reflect.DeepEqual(*pauses, want) {
		t.Fatal(*pauses)
	}
	if _, err := send(client, WithIdempotencyKey("order-7")); err != nil || server.requests[len(server.requests)-1].Header.Get("Idempotency-Key") != "order-7" {
		t.Fatal("the caller's key is not used", err)
	}
	if _, err := send(client, WithHeader("idempotency-key", "order-8")); err != nil || server.requests[len(server.requests)-1].Header.Get("Idempotency-Key") != "order-8" {
		t.Fatal("the caller's header is not used", err)
	}
}

// Attempts of emails.send (safe) and templates.create (not) until the call gives up.
func TestWhatIsRetried(t *testing.T) {
	for name, one := range map[string]struct {
		answer       http.HandlerFunc
		safe, unsafe int
	}{
		"408":                     {fails(408, "request_timeout"), 3, 1},
		"500":                     {fails(500, "internal_error"), 3, 1},
		"502":                     {fails(502, "mail_server_error"), 3, 1},
		"502 of a proxy":          {text(502, "text/html", "<html>"), 3, 1},
		"503":                     {fails(503, "service_unavailable"), 3, 3},
		"rate_limit_exceeded":     {fails(429, "rate_limit_exceeded"), 3, 3},
		"idempotency_in_progress": {fails(409, "idempotency_in_progress"), 3, 1},
		"plan_limit":              {fails(429, "plan_limit"), 1, 1},
		"422":                     {fails(422, "validation_error"), 1, 1},
		"504":                     {fails(504, "send_unconfirmed"), 1, 1},
		"429 of a proxy":          {text(429, "text/html", "<html>"), 1, 1},
		"reset":                   {raw("", false, true), 3, 1},
		"cut body":                {raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", false, false), 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, one.answer)
			client, _ := clientOf(t, server.URL)
			if _, err := send(client); err == nil || server.seen() != one.safe {
				t.Fatal(server.seen(), err)
			}
			// A new client, so that no connection is left over.
			server = serve(t, one.answer)
			client, _ = clientOf(t, server.URL)
			if _, err := client.Templates.Create(context.Background(), nil); err == nil || server.seen() != one.unsafe {
				t.Fatal(server.seen(), err)
			}
		})
	}
}

func TestRefusedConnectionsAreRetriedForAll(t *testing.T) {
	server := serve(t, answers(200, "{}"))
	base := server.URL
	server.Close()
	client, pauses := clientOf(t, base)
	if _, err := client.Templates.Create(context.Background(), nil); err == nil || len(*pauses) != 2 {
		t.Fatal(*pauses, err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "Thu, 01 Jan 2026 10:00:09 GMT": 9 * time.Second, "Thu, 01 Jan 2025 10:00:09 GMT": 0,
	} {
		if got, ok := retryAfter(http.Header{"Retry-After": {text}}, now); !ok || got != want {
			t.Error(text, got)
		}
	}
	for _, text := range []string{"", "-1", "soon", "99999999999999999999"} {
		if _, ok := retryAfter(http.Header{"Retry-After": {text}}, now); ok {
			t.Error(text)
		}
	}
}

func TestAWaitBeyondTheDeadlineFailsAtOnce(t *testing.T) {
	server := serve(t, fails(429, "rate_limit_exceeded", "Retry-After", "3600", "Ratelimit-Limit", "10", "Ratelimit-Remaining", "0", "Ratelimit-Reset", "7"))
	client, pauses := clientOf(t, server.URL)
	var response Response
	_, err := send(client, WithResponse(&response))
	var limited *RateLimitError
	if !errors.As(err, &limited) || limited.RetryAfter != time.Hour || limited.Limit != 10 || limited.Reset != 7 || len(*pauses) != 0 {
		t.Fatal(err, *pauses)
	}
	if response.Status != 429 || client.LastResponse().RateLimit.Limit != 10 {
		t.Fatal(response)
	}
}

func TestPausesGrowToTheirMaximum(t *testing.T) {
	client, _ := clientOf(t, "https://mail.example")
	for attempt, want := range map[int]time.Duration{0: backoffMin, 3: 4 * time.Second, 4: backoffMax, 1000: backoffMax} {
		if got := client.transport.pause(&TimeoutError{}, attempt); got != want {
			t.Error(attempt, got)
		}
	}
}

func TestResolveAsksUntilTheEmailIsNoLongerFailed(t *testing.T) {
	unconfirmed := answers(504, `{"error":{"message":"Unknown","code":"send_unconfirmed","details":{"email_id":"msg_1"}}}`)
	failed := answers(200, `{"email":{"id":"msg_1","status":"failed"}}`)
	server := serve(t, unconfirmed, fails(404, "not_found"), failed, answers(200, `{"email":{"id":"msg_1","status":"sent"}}`))
	client, _ := clientOf(t, server.URL)
	_, err := send(client)
	var lost *SendUnconfirmedError
	var base *APIError
	if !errors.As(err, &lost) || !errors.As(err, &base) || base.Status != 504 {
		t.Fatal(err)
	}
	email, err := lost.Resolve(context.Background(), time.Minute)
	if err != nil || email.Status != EmailStatusSent {
		t.Fatal(email, err)
	}
	for _, request := range server.requests[1:] {
		if request.Method != "GET" || request.URL.Path != "/emails/msg_1" {
			t.Fatal(request.Method, request.URL)
		}
	}
	server = serve(t, unconfirmed, failed)
	client, _ = clientOf(t, server.URL)
	_, err = send(client)
	if !errors.As(err, &lost) {
		t.Fatal(err)
	}
	client.transport.sleep = func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }
	if email, err = lost.Resolve(context.Background(), 100*time.Millisecond); err != nil || email.Status != EmailStatusFailed {
		t.Fatal(email, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err = lost.Resolve(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestPages(t *testing.T) {
	page := func(id, more, cursor string) http.HandlerFunc {
		return answers(200, `{"emails":[{"id":"`+id+`"}],"has_more":`+more+`,"next_cursor":`+cursor+`}`)
	}
	server := serve(t, page("msg_1", "true", `"a"`), page("msg_2", "true", `"b"`), page("msg_3", "false", "null"))
	client, _ := clientOf(t, server.URL)
	var ids []string
	emails := client.Emails.ListAll(context.Background(), &ListEmailsParams{Limit: Int(1), Tag: []string{"a", "b"}, Status: []ListEmailsStatus{"sent", "failed"}})
	for emails.Next() {
		ids = append(ids, emails.Value().ID)
	}
	if emails.Err() != nil || strings.Join(ids, " ") != "msg_1 msg_2 msg_3" {
		t.Fatal(ids, emails.Err())
	}
	if got := server.requests[1].URL.RawQuery; got != "cursor=a&limit=1&status=sent%2Cfailed&tag=a&tag=b" {
		t.Fatal(got)
	}
	server = serve(t, page("msg_1", "true", `"a"`))
	client, _ = clientOf(t, server.URL)
	endless := client.Emails.ListAll(context.Background(), nil)
	for endless.Next() {
	}
	var unexpected *UnexpectedResponseError
	if !errors.As(endless.Err(), &unexpected) || server.seen() != 2 {
		t.Fatal(endless.Err(), server.seen())
	}
	server = serve(t, page("msg_1", "true", `"a"`), page("msg_2", "true", `"b"`), page("msg_1", "true", `"a"`))
	client, _ = clientOf(t, server.URL)
	circle := client.Emails.ListAll(context.Background(), nil)
	for circle.Next() {
	}
	if !errors.As(circle.Err(), &unexpected) || server.seen() != 3 {
		t.Fatal(circle.Err(), server.seen())
	}
}
