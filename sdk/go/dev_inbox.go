package postrider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DevInbox is the inbox of `postrider dev`, for tests of applications.
type DevInbox struct{ transport *transport }

// WaitForEmailParams say what to wait for.
type WaitForEmailParams struct {
	// To is a recipient.
	To *string `json:"to,omitempty"`
	// Subject is a part of the subject.
	Subject *string `json:"subject,omitempty"`
	// Timeout is 30 s if it is 0.
	Timeout time.Duration  `json:"-"`
	Extra   map[string]any `json:"-"`
}

// DevEmail is an email in the inbox.
type DevEmail struct {
	ID           int64          `json:"id"`
	From         string         `json:"from"`
	EnvelopeFrom string         `json:"envelope_from"`
	To           []string       `json:"to"`
	Subject      string         `json:"subject"`
	Text         string         `json:"text"`
	HTML         string         `json:"html"`
	Extra        map[string]any `json:"-"`
}

func (v DevEmail) MarshalJSON() ([]byte, error)     { return encodeObject(v) }
func (v *DevEmail) UnmarshalJSON(text []byte) error { return decodeObject(text, v) }

// WaitForEmail returns the newest email that fits, as soon as there is one; a TimeoutError if none comes.
func (i *DevInbox) WaitForEmail(ctx context.Context, params WaitForEmailParams) (*DevEmail, error) {
	if params.Timeout <= 0 {
		params.Timeout = 30 * time.Second
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, params.Timeout)
	defer cancel()
	for {
		deadline, _ := ctx.Deadline()
		wait := time.Until(deadline)
		if wait > 20*time.Second {
			wait = 20 * time.Second
		}
		params.Extra = map[string]any{"limit": 1, "wait": fmt.Sprintf("%dms", wait.Milliseconds())}
		list := operation{name: "dev.waitForEmail", method: "GET", path: "/messages", retried: true, media: "application/json"}
		found, err := callJSON[struct{ Messages []DevEmail }](ctx, i.transport, list, nil, &params, []CallOption{WithTimeout(wait + 10*time.Second)})
		var timeout *TimeoutError
		if errors.As(err, &timeout) || err == nil && len(found.Messages) == 0 && ctx.Err() != nil {
			// The context of the caller can end before the timeout.
			waited := time.Since(start).Round(10 * time.Millisecond)
			return nil, &TimeoutError{"No such email came within " + waited.String() + ": check that the application sends to this server"}
		}
		if err != nil {
			return nil, err
		}
		if len(found.Messages) > 0 {
			list.path = "/messages/{id}"
			return callJSON[DevEmail](ctx, i.transport, list, []string{fmt.Sprint(found.Messages[0].ID)}, nil, nil)
		}
	}
}
