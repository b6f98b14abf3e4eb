package postrider

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

const testKey = "rnl_0123456789abcdef"

// attemptsServer answers the n-th request with the n-th function, and all later ones with the last.
type attemptsServer struct {
	*httptest.Server
	lock     sync.Mutex
	answers  []http.HandlerFunc
	requests []*http.Request
	bodies   []string
}

func serve(t testing.TB, answers ...http.HandlerFunc) *attemptsServer {
	t.Helper()
	server := &attemptsServer{answers: answers}
	server.Server = httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		server.lock.Lock()
		answer := server.answers[0]
		if len(server.answers) > 1 {
			server.answers = server.answers[1:]
		}
		server.requests = append(server.requests, request)
		server.bodies = append(server.bodies, string(body))
		server.lock.Unlock()
		answer(writer, request)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// seen is the number of requests.
func (s *attemptsServer) seen() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.requests)
}

func text(status int, media, content string, headers ...string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", media)
		for i := 0; i+1 < len(headers); i += 2 {
			writer.Header().Set(headers[i], headers[i+1])
		}
		writer.WriteHeader(status)
		_, _ = io.WriteString(writer, content)
	}
}

func answers(status int, content string, headers ...string) http.HandlerFunc {
	return text(status, "application/json", content, headers...)
}

func fails(status int, code string, headers ...string) http.HandlerFunc {
	return answers(status, `{"error":{"message":"Injected","code":"`+code+`","request_id":"req_1","doc_url":"https://docs.example"}}`, headers...)
}

// raw writes bytes as they are, then hangs until the client leaves, or closes the connection.
func raw(content string, hangs, resets bool) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		connection, buffered, err := writer.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer connection.Close()
		_, _ = io.WriteString(connection, content)
		if hangs {
			_, _ = buffered.ReadByte()
		}
		if tcp, ok := connection.(*net.TCPConn); ok && resets {
			_ = tcp.SetLinger(0)
		}
	}
}

// clientOf makes a client whose pauses are recorded instead of waited for.
func clientOf(t testing.TB, base string, options ...Option) (*Client, *[]time.Duration) {
	t.Helper()
	client, err := New(append([]Option{WithAPIKey(testKey), WithBaseURL(base)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	client.transport.random = func() float64 { return 1 }
	client.transport.sleep = func(ctx context.Context, pause time.Duration) error {
		pauses = append(pauses, pause)
		return ctx.Err()
	}
	return client, &pauses
}

func send(client *Client, options ...CallOption) (*Sent, error) {
	return client.Emails.Send(context.Background(), &SendEmailParams{
		From: String("ada@example.com"), To: []string{"grace@example.net"}, Subject: String("<Hi>"),
	}, options...)
}
