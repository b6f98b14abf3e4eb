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
}

func (e *APIError) Error() string {
	text := fmt.Sprintf("postrider: %s (status %d, code %s", e.Message, e.Status, e.Code)
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

func (*APIError) isPostrider() {}

// ValidationError says what is wrong in the request.
type ValidationError struct {
	APIError
	// Fields has a message for each wrong field.
	Fields map[string]string
}

func (e *ValidationError) Unwrap() error { return &e.APIError }

// SuppressedRecipientError is a ValidationError: recipients are suppressed, or opted out of the category.
type SuppressedRecipientError struct {
	ValidationError
	Suppressed []string
	Category   string
	EmailID    string
}

func (e *SuppressedRecipientError) Unwrap() error { return &e.ValidationError }

// AuthenticationError: the API key is missing, unknown or expired.
type AuthenticationError struct {
	APIError
	Reason string
}

func (e *AuthenticationError) Unwrap() error { return &e.APIError }

// PermissionError: the key or the account may not do this.
type PermissionError struct{ APIError }

func (e *PermissionError) Unwrap() error { return &e.APIError }

// NotFoundError: there is nothing with this id.
type NotFoundError struct{ APIError }

func (e *NotFoundError) Unwrap() error { return &e.APIError }

// ConflictError: the request does not fit the current state.
type ConflictError struct{ APIError }

func (e *ConflictError) Unwrap() error { return &e.APIError }

// IdempotencyConflictError is a ConflictError: the idempotency key was used with another body.
type IdempotencyConflictError struct{ ConflictError }

func (e *IdempotencyConflictError) Unwrap() error { return &e.ConflictError }

// PlanLimitError: a limit of the plan is reached.
type PlanLimitError struct {
	APIError
	UpgradeURL string
	Limit      string
	Used, Cap  int64
	ResetsAt   string
}

func (e *PlanLimitError) Unwrap() error { return &e.APIError }

// RateLimitError: too many requests, also after retries.
type RateLimitError struct {
	APIError
	RateLimit
	RetryAfter time.Duration
}

func (e *RateLimitError) Unwrap() error { return &e.APIError }

// UpstreamError: another service, for example a DNS provider, refused or failed.
type UpstreamError struct{ APIError }

func (e *UpstreamError) Unwrap() error { return &e.APIError }

// ServerError: the server has a fault or is overloaded.
type ServerError struct{ APIError }

func (e *ServerError) Unwrap() error { return &e.APIError }

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

// TimeoutError: the deadline of the call passed. It is a context.DeadlineExceeded for errors.Is.
type TimeoutError struct{ Message string }

func (e *TimeoutError) Error() string { return "postrider: " + e.Message }
func (*TimeoutError) Unwrap() error   { return context.DeadlineExceeded }
func (*TimeoutError) Timeout() bool   { return true }
func (*TimeoutError) isPostrider()    {}

// CancelledError: the context was cancelled. It is a context.Canceled for errors.Is.
type CancelledError struct{ Message string }

func (e *CancelledError) Error() string { return "postrider: " + e.Message }
func (*CancelledError) Unwrap() error   { return context.Canceled }
func (*CancelledError) isPostrider()    {}

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

// ConfigurationError: the client or the call was made with an invalid value.
type ConfigurationError struct{ Message string }

func (e *ConfigurationError) Error() string { return "postrider: " + e.Message }
func (*ConfigurationError) isPostrider()    {}

// SignatureError: the signature of a webhook is missing or wrong.
type SignatureError struct{ Message string }

func (e *SignatureError) Error() string { return "postrider: " + e.Message }
func (*SignatureError) isPostrider()    {}

// TimestampError is a SignatureError: the time of a webhook is outside of the tolerance.
type TimestampError struct{ SignatureError }

func (e *TimestampError) Unwrap() error { return &e.SignatureError }

// ended is the error of a context that has ended.
func ended(ctx context.Context, text string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CancelledError{"The call was cancelled"}
	}
	return &TimeoutError{text}
}

// apiError reads the API's error format; nil if the body has another one.
func apiError(client *Client, response *Response, body []byte) error {
	var answer struct {
		Error *struct {
			Message, Code string
			RequestID     string `json:"request_id"`
			DocURL        string `json:"doc_url"`
			UpgradeURL    string `json:"upgrade_url"`
			Details       map[string]any
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil || answer.Error.Message == "" {
		return nil
	}
	from := answer.Error
	base := APIError{response.Status, from.Code, from.Message, from.RequestID, from.DocURL, response.Headers, from.Details}
	if base.RequestID == "" {
		base.RequestID = response.RequestID
	}
	text := func(name string) string { value, _ := from.Details[name].(string); return value }
	number := func(name string) int64 { value, _ := from.Details[name].(float64); return int64(value) }
	class := errorClass(from.Code)
	switch {
	case class == "" && response.Status == http.StatusUnauthorized:
		class = "AuthenticationError"
	case class == "" && response.Status >= 500:
		class = "ServerError"
	}
	switch class {
	case "ValidationError":
		validation := ValidationError{base, map[string]string{}}
		if fields, ok := from.Details["fields"].(map[string]any); ok {
			for name, value := range fields {
				validation.Fields[name] = fmt.Sprint(value)
			}
		}
		addresses := texts(from.Details["suppressed"])
		if addresses == nil {
			addresses = texts(from.Details["category_unsubscribed"])
		}
		if addresses != nil && from.Code == "validation_error" {
			return &SuppressedRecipientError{validation, addresses, text("category"), text("email_id")}
		}
		return &validation
	case "AuthenticationError":
		return &AuthenticationError{base, text("reason")}
	case "PermissionError":
		return &PermissionError{base}
	case "NotFoundError":
		return &NotFoundError{base}
	case "ConflictError":
		return &ConflictError{base}
	case "IdempotencyConflictError":
		return &IdempotencyConflictError{ConflictError{base}}
	case "PlanLimitError":
		return &PlanLimitError{base, from.UpgradeURL, text("limit"), number("used"), number("cap"), text("resets_at")}
	case "RateLimitError":
		limited := &RateLimitError{APIError: base}
		limited.RetryAfter, _ = retryAfter(response.Headers, time.Now())
		if response.RateLimit != nil {
			limited.RateLimit = *response.RateLimit
		}
		return limited
	case "UpstreamError":
		return &UpstreamError{base}
	case "SendUnconfirmedError":
		return &SendUnconfirmedError{base, text("email_id"), client}
	case "ServerError":
		return &ServerError{base}
	}
	return &base
}

func texts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	all := []string{}
	for _, one := range list {
		if object, ok := one.(map[string]any); ok {
			one = object["email"]
		}
		all = append(all, fmt.Sprint(one))
	}
	return all
}
