package postrider

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// realClient starts `postrider dev` and returns a client of it, and its domain.
func realClient(t testing.TB) (*Client, string) {
	t.Helper()
	binary := os.Getenv("TEST_POSTRIDER")
	if binary == "" {
		binary = "../../target/debug/postrider"
	}
	if _, err := os.Stat(binary); err != nil {
		t.Skip("there is no server: set TEST_POSTRIDER")
	}
	// Ports are chosen anew if another program took one in between.
	for attempt := 0; attempt < 5; attempt++ {
		words := []string{"dev", "--json", "--data-dir", t.TempDir()}
		for _, flag := range []string{"--api", "--submission", "--mx"} {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, flag, listener.Addr().String())
			listener.Close()
		}
		command := exec.Command(binary, words...)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(output)
		line, err := lines.ReadBytes('\n')
		if err != nil {
			_ = command.Wait()
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		t.Cleanup(func() {
			_ = command.Process.Signal(os.Interrupt)
			_ = command.Wait()
		})
		var ready struct {
			API    string
			APIKey string `json:"api_key"`
			Domain string
		}
		if err := json.Unmarshal(line, &ready); err != nil {
			t.Fatal(err)
		}
		client, err := New(WithAPIKey(ready.APIKey), WithBaseURL(ready.API))
		if err != nil {
			t.Fatal(err)
		}
		return client, ready.Domain
	}
	t.Fatal("the server does not start")
	return nil, ""
}

func TestARealServer(t *testing.T) {
	client, domain := realClient(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	delivered := make(chan *WebhookEvent, 1)
	secrets := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		secret := <-secrets
		secrets <- secret
		WebhookHandler([]string{secret}, func(_ context.Context, event *WebhookEvent) error {
			select {
			case delivered <- event:
			default:
			}
			return nil
		}).ServeHTTP(writer, request)
	}))
	defer hook.Close()
	webhook, err := client.Webhooks.Create(ctx, &CreateWebhookParams{URL: hook.URL, Events: []WebhookEventType{WebhookEventTypeEmailSent}})
	if err != nil {
		t.Fatal(err)
	}
	secrets <- webhook.Secret

	var ids []string
	for i := 0; i < 5; i++ {
		var response Response
		sent, err := client.Emails.Send(ctx, &SendEmailParams{
			From: String("Ada <ada@" + domain + ">"), To: []string{"grace@example.net"},
			Subject: String(fmt.Sprintf("Hello %d", i)), Text: String("Hello"),
			Attachments: []EmailAttachment{{Name: "terms.txt", Data: []byte("Terms")}},
		}, WithIdempotencyKey(fmt.Sprint("key-", i)), WithResponse(&response))
		if err != nil || response.RequestID == "" {
			t.Fatal(err, response)
		}
		ids = append([]string{sent.ID}, ids...)
	}

	var listed []string
	emails := client.Emails.ListAll(ctx, &ListEmailsParams{Limit: Int(2), To: String("grace@example.net")})
	for emails.Next() {
		listed = append(listed, emails.Value().ID)
	}
	if emails.Err() != nil || strings.Join(listed, " ") != strings.Join(ids, " ") {
		t.Fatal(listed, ids, emails.Err())
	}

	select {
	case event := <-delivered:
		if data, ok := event.Data.(*EmailSentData); !ok || !strings.HasPrefix(data.Subject, "Hello") {
			t.Fatalf("%+v", event)
		}
	case <-ctx.Done():
		t.Fatal("no webhook came")
	}

	page, err := client.WebhookEvents.List(ctx, &ListWebhookEventsParams{Order: ListWebhookEventsOrderAsc, Limit: Int(1)})
	if err != nil || page.NextCursor == nil {
		t.Fatal(page, err)
	}
	events := client.WebhookEvents.Stream(ctx, &StreamParams{Types: []WebhookEventType{WebhookEventTypeEmailSent}, After: *page.NextCursor})
	defer events.Close()
	for i := 0; i < 4; i++ {
		if !events.Next() {
			t.Fatal(events.Err())
		}
		if data, ok := events.Value().Data.(*EmailSentData); !ok || !strings.Contains(strings.Join(ids, " "), data.EmailID) {
			t.Fatalf("%+v", events.Value())
		}
	}
}
