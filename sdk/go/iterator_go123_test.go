//go:build go1.23

package postrider

import (
	"context"
	"errors"
	"testing"
)

func TestRangeOverPages(t *testing.T) {
	server := serve(t, answers(200, `{"emails":[{"id":"msg_1"}],"has_more":true,"next_cursor":"a"}`), fails(400, "invalid_cursor"))
	client, _ := clientOf(t, server.URL)
	var ids []string
	var last error
	client.Emails.ListAll(context.Background(), nil).All()(func(email Email, err error) bool {
		ids, last = append(ids, email.ID), err
		return true
	})
	var invalid *ValidationError
	if len(ids) != 2 || ids[0] != "msg_1" || !errors.As(last, &invalid) {
		t.Fatal(ids, last)
	}
}

func TestRangeOverTheStream(t *testing.T) {
	server := serve(t, stream(frame+frame))
	client, _ := clientOf(t, server.URL)
	events := client.WebhookEvents.Stream(context.Background(), nil)
	count := 0
	events.All()(func(*WebhookEvent, error) bool {
		count++
		return false
	})
	if count != 1 || events.ctx.Err() == nil {
		t.Fatal("the stream was not closed", count)
	}
}
