package postrider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Error is any error of this package:
//
//	var all postrider.Error
//	errors.As(err, &all)
type Error interface {
	error
	isPostrider()
}

// APIError is an error that the API answered, of a code without a struct of its own. errors.As finds it in each of them.
type APIError struct {
	Status    int
	Code      string
	Message   string
	RequestID string
	// DocURL is the page that explains the code.
	DocURL  string
	Headers http.Header
	Details map[string]any
	answer  map[string]any
}

func (e *APIError) Error() string {
	text := fmt.Sprintf("postrider: %s (status %d, code %s", e.Message, e.Status, e.Code)
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

func (*APIError) isPostrider() {}

// SendUnconfirmedError: the server does not know whether it took the email. Sending again could deliver it twice; call
// Resolve.
type SendUnconfirmedError struct {
	APIError
	EmailID string
	client  *Client
}

func (e *SendUnconfirmedError) Unwrap() error { return &e.APIError }

// Resolve asks for the email until it is no longer failed, for at most timeout, and returns it as it is then. It never
// sends again. The error is a NotFoundError if the server did not take the email.
func (e *SendUnconfirmedError) Resolve(caller context.Context, timeout time.Duration) (*EmailDetail, error) {
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		answer, err := e.client.Emails.Get(ctx, e.EmailID)
		var missing *NotFoundError
		if err != nil && !errors.As(err, &missing) {
			return nil, err
		}
		if err == nil && answer.Email.Status != EmailStatusFailed {
			return &answer.Email, nil
		}
		pause := backoffMax
		if attempt < 4 {
			pause = backoffMin << attempt
		}
		if err := e.client.transport.sleep(ctx, pause); err != nil {
			if missing != nil {
				return nil, missing
			}
			if caller.Err() == nil {
				return &answer.Email, nil
			}
			return nil, ended(caller, "The email "+e.EmailID+" is still unconfirmed; ask again later")
		}
	}
}

// ConnectionError: there was no answer.
type ConnectionError struct {
	Message string
	// Reason is dns, refused, reset, tls or other.
	Reason string
	cause  error
	unsent bool
}

func (e *ConnectionError) Error() string { return "postrider: " + e.Message }
func (e *ConnectionError) Unwrap() error { return e.cause }
func (*ConnectionError) isPostrider()    {}

// Timeout makes it a timeout for net.Error.
func (*TimeoutError) Timeout() bool { return true }

// UnexpectedResponseError: an answer that is not the API's, for example the page of a proxy.
type UnexpectedResponseError struct {
	Message     string
	Status      int
	ContentType string
	// Excerpt is the beginning of the body, at most 200 characters.
	Excerpt string
	Headers http.Header
	cut     bool
}

func (e *UnexpectedResponseError) Error() string { return "postrider: " + e.Message }
func (*UnexpectedResponseError) isPostrider()    {}

// ended is the error of a context that has ended.
func ended(ctx context.Context, text string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CancelledError{"The call was cancelled"}
	}
	return &TimeoutError{text}
}

// apiError reads the API's error format; nil if the body has another one.
func apiError(client *Client, response *Response, body []byte) error {
	var answer struct{ Error map[string]any }
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	details, _ := answer.Error["details"].(map[string]any)
	base := APIError{Status: response.Status, Headers: response.Headers, Details: details, answer: answer.Error}
	base.Code, base.Message, base.DocURL = base.text("code"), base.text("message"), base.text("doc_url")
	if base.RequestID = base.text("request_id"); base.RequestID == "" {
		base.RequestID = response.RequestID
	}
	if base.Message == "" {
		return nil
	}
	return newError(client, base)
}
