package postrider

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
)

// The overhead of a call is the difference of the two benchmarks: go test -bench Send
const sentJSON = `{"id":"msg_1","status":"sent"}`

func BenchmarkSend(b *testing.B) {
	server := serve(b, answers(200, sentJSON))
	client, _ := clientOf(b, server.URL)
	for i := 0; i < b.N; i++ {
		if _, err := send(client); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareSend(b *testing.B) {
	server := serve(b, answers(200, sentJSON))
	body := []byte(`{"from":"ada@example.com","to":["grace@example.net"],"subject":"<Hi>"}`)
	for i := 0; i < b.N; i++ {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/emails", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
}
