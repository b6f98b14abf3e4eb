package postrider

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	answerBytesMax = 256 << 20
	errorBytesMax  = 1 << 20
	backoffMin     = 500 * time.Millisecond
	backoffMax     = 8 * time.Second
)

// operation is a row of the API's operation table.
type operation struct {
	name, method, path        string
	body, idempotent, retried bool
	// media is the media type of the answer.
	media string
}

// RateLimit is what the answer's ratelimit headers say.
type RateLimit struct {
	Limit, Remaining int64
	// Reset is the number of seconds until the limit begins anew.
	Reset int64
}

// Response describes an answer.
type Response struct {
	Status    int
	RequestID string
	// RateLimit is nil if the answer says nothing about it.
	RateLimit *RateLimit
	Headers   http.Header
	Warnings  []string
}

// transport sends requests. It has the API key in functions only, so that no printer of structs shows it.
type transport struct {
	client   *Client
	base     string
	http     http.RoundTripper
	settings settings
	key      func() string
	last     atomic.Pointer[Response]
	now      func() time.Time
	random   func() float64
	sleep    func(context.Context, time.Duration) error
}

func newTransport(base string, s settings) *transport {
	key := s.key
	s.key = ""
	if s.roundTripper == nil {
		s.roundTripper = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    32,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: errorBytesMax,
		}
	}
	return &transport{
		base: base, http: s.roundTripper, settings: s, key: func() string { return key },
		now: time.Now, random: randomFraction, sleep: sleep,
	}
}

func randomFraction() float64 {
	number, err := rand.Int(rand.Reader, big.NewInt(1<<53))
	if err != nil {
		return 1
	}
	return float64(number.Int64()) / (1 << 53)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func callJSON[T any](ctx context.Context, t *transport, op operation, path []string, params any, options []CallOption) (*T, error) {
	answer := new(T)
	if err := t.call(ctx, op, path, params, options, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// call sends a request until there is an answer, no retry is left, or the deadline passes. It reads the answer into
// answer: *[]byte or a pointer to the type of its JSON.
func (t *transport) call(ctx context.Context, op operation, path []string, params any, options []CallOption, answer any) error {
	s := t.settings
	for _, option := range options {
		option.applyToCall(&s)
	}
	if err := s.check(); err != nil {
		return err
	}
	target, err := op.target(path)
	if err != nil {
		return err
	}
	headers := s.headers.Clone()
	headers.Set("Accept", op.media)
	if op.media != "application/json" {
		headers.Set("Accept", op.media+", application/json")
	}
	if s.idempotencyKey == "" && op.idempotent && headers.Get("Idempotency-Key") == "" {
		if s.idempotencyKey, err = newUUID(); err != nil {
			return &ConfigurationError{"The system gives no random numbers for an idempotency key: " + err.Error()}
		}
	}
	if s.idempotencyKey != "" {
		headers.Set("Idempotency-Key", s.idempotencyKey)
	}
	if s.ifMatch != "" {
		headers.Set("If-Match", s.ifMatch)
	}
	var body []byte
	if op.body {
		body = []byte("{}")
	}
	if value := reflect.ValueOf(params); params != nil && !value.IsNil() {
		if query := encodeQuery(value.Elem(), !op.body); len(query) > 0 {
			target += "?" + query.Encode()
		}
		if op.body {
			if body, err = encodeObject(value.Elem().Interface()); err != nil {
				return &ConfigurationError{"The params cannot be written as JSON: " + err.Error()}
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		response, err := t.attempt(ctx, op, target, headers, body, answer)
		if response != nil && s.response != nil {
			*s.response = *response
		}
		if err == nil {
			for _, warning := range response.Warnings {
				if s.onWarning != nil {
					s.onWarning(op.name, warning)
				}
			}
			return nil
		}
		if attempt >= s.maxRetries || !isRetried(err, op.retried) {
			return err
		}
		pause := t.pause(err, attempt)
		if deadline, _ := ctx.Deadline(); t.now().Add(pause).After(deadline) {
			return err
		}
		if t.sleep(ctx, pause) != nil {
			return ended(ctx, "The call to "+t.base+" did not end within its timeout")
		}
	}
}

// target is the path with its parameters.
func (op operation) target(parameters []string) (string, error) {
	segments := strings.Split(op.path, "/")
	for i, segment := range segments {
		if !strings.HasPrefix(segment, "{") {
			continue
		}
		value := parameters[0]
		parameters = parameters[1:]
		if value == "" || value == "." || value == ".." { // URLs resolve the last two, also if they are escaped.
			return "", &ConfigurationError{"The " + strings.Trim(segment, "{}") + " of " + op.name + " is empty or no id"}
		}
		segments[i] = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	}
	return strings.Join(segments, "/"), nil
}

// attempt sends a request once and reads the answer.
func (t *transport) attempt(ctx context.Context, op operation, target string, headers http.Header, body []byte, answer any) (*Response, error) {
	got, response, err := t.send(ctx, op.method, target, headers, body)
	if err != nil {
		return response, err
	}
	defer got.Body.Close()
	content, err := t.read(ctx, got, response, answerBytesMax)
	if err != nil {
		return response, err
	}
	if raw, ok := answer.(*[]byte); ok {
		// A proxy's page instead of a file; attachments may have any type.
		if media := mediaType(got.Header); op.media != "application/octet-stream" && media != mediaType(http.Header{"Content-Type": {op.media}}) {
			return response, t.unexpected(response, content)
		}
		*raw = content
		return response, nil
	}
	if !bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return response, t.unexpected(response, content)
	}
	if bytes.Contains(content, []byte(`"warnings"`)) {
		var from struct{ Warnings []string }
		if json.Unmarshal(content, &from) == nil {
			response.Warnings = from.Warnings
		}
	}
	if err := json.Unmarshal(content, answer); err != nil {
		unexpected := t.unexpected(response, content)
		unexpected.Message += ": " + t.redacted(err.Error())
		return response, unexpected
	}
	return response, nil
}

// send sends a request. An answer without success is an error.
func (t *transport) send(ctx context.Context, method, target string, headers http.Header, body []byte) (*http.Response, *Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.base+target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, &ConfigurationError{"The request cannot be made: " + t.redacted(err.Error())}
	}
	request.Header = headers.Clone()
	request.Header.Set("Authorization", "Bearer "+t.key())
	request.Header.Set("Service-Version", serviceVersion)
	request.Header.Set("User-Agent", strings.TrimSpace("postrider-go/"+Version+" "+headers.Get("User-Agent")))
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	got, err := t.http.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ended(ctx, request.URL.Host+" did not answer within the call's timeout: try again, or raise the timeout")
		}
		return nil, nil, t.unanswered(err, request.URL.Host)
	}
	response := t.received(got)
	if got.StatusCode >= 200 && got.StatusCode < 300 && got.StatusCode != http.StatusAccepted {
		return got, response, nil
	}
	content, err := t.read(ctx, got, response, errorBytesMax)
	got.Body.Close()
	if err != nil {
		return nil, response, err
	}
	if got.StatusCode == http.StatusAccepted {
		if err := heldError(response, []byte(t.redacted(string(content)))); err != nil {
			return nil, response, err
		}
		got.Body = io.NopCloser(bytes.NewReader(content))
		return got, response, nil
	}
	if got.StatusCode >= 400 {
		if err := apiError(t.client, response, []byte(t.redacted(string(content)))); err != nil {
			return nil, response, err
		}
	}
	return nil, response, t.unexpected(response, content)
}

func (t *transport) received(got *http.Response) *Response {
	headers := http.Header{}
	for name, values := range got.Header {
		for _, value := range values {
			headers.Add(name, t.redacted(value))
		}
	}
	number := func(name string) int64 {
		value, _ := strconv.ParseInt(headers.Get("Ratelimit-"+name), 10, 64)
		return value
	}
	response := &Response{Status: got.StatusCode, RequestID: headers.Get("X-Request-Id"), Headers: headers}
	if headers.Get("Ratelimit-Limit") != "" {
		response.RateLimit = &RateLimit{number("Limit"), number("Remaining"), number("Reset")}
	}
	t.last.Store(response)
	return response
}

func (t *transport) read(ctx context.Context, got *http.Response, response *Response, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(got.Body, limit+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ended(ctx, "The answer of "+got.Request.URL.Host+" did not end within the call's timeout: try again, or raise the timeout")
	case err != nil:
		unexpected := t.unexpected(response, content)
		unexpected.Message = fmt.Sprintf("The answer with status %d ended too early (%v): check the proxy in front of the server", response.Status, err)
		unexpected.cut = true
		return nil, unexpected
	case int64(len(content)) > limit:
		unexpected := t.unexpected(response, content)
		if response.Status < 400 {
			unexpected.Message = fmt.Sprintf("The answer is longer than %d MiB: ask for less", limit>>20)
		}
		return nil, unexpected
	}
	return content, nil
}

func mediaType(headers http.Header) string {
	media, _, _ := strings.Cut(headers.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func (t *transport) unexpected(response *Response, content []byte) *UnexpectedResponseError {
	media := response.Headers.Get("Content-Type")
	if len(content) > 1000 {
		content = content[:1000]
	}
	excerpt := []rune(strings.ToValidUTF8(t.redacted(string(content)), ""))
	if len(excerpt) > 200 {
		excerpt = excerpt[:200]
	}
	message := fmt.Sprintf("The answer of %s with status %d (%q) is not the API's: check the base URL, and the proxy in front of the server", t.base, response.Status, media)
	switch {
	case response.Status >= 300 && response.Status < 400:
		message = fmt.Sprintf("%s redirects to %q, which is not followed because it would get the API key: use the right base URL", t.base, response.Headers.Get("Location"))
	case response.Status == http.StatusRequestEntityTooLarge:
		message = "A proxy in front of the server refuses requests of this size: send less, or raise the proxy's limit"
	case len(content) == 0:
		message = fmt.Sprintf("The answer of %s with status %d is empty: check the proxy in front of the server", t.base, response.Status)
	}
	return &UnexpectedResponseError{message, response.Status, media, string(excerpt), response.Headers, false}
}

// redacted removes the API key from what a server or a proxy repeats.
func (t *transport) redacted(text string) string {
	if len(t.key()) < 8 {
		return text
	}
	return strings.ReplaceAll(text, t.key(), "[API key]")
}

// unanswered is the error of a request without an answer, although the call's time is not over.
func (t *transport) unanswered(cause error, host string) error {
	text := t.redacted(cause.Error())
	reason, advice := "other", "check the network and the base URL"
	var dns *net.DNSError
	var op *net.OpError
	var slow net.Error
	unsent := errors.As(cause, &op) && op.Op == "dial"
	if errors.As(cause, &slow) && slow.Timeout() && !unsent && !errors.As(cause, &dns) && !errors.Is(cause, syscall.ETIMEDOUT) {
		return &TimeoutError{host + " did not answer within the transport's own time (" + text + "): check the server and the network"}
	}
	switch {
	case errors.As(cause, &dns):
		reason, advice = "dns", "check the host name in the base URL"
	case errors.Is(cause, syscall.ECONNREFUSED):
		reason, advice = "refused", "check that the server runs, and the port in the base URL"
	case strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") || strings.Contains(text, "HTTPS client"):
		reason, advice = "tls", "check the server's certificate, and that the port in the base URL is the one for https"
	case errors.Is(cause, syscall.ECONNRESET) || errors.Is(cause, syscall.EPIPE) || errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) || strings.Contains(text, "closed"):
		reason, advice = "reset", "the connection was lost; try again"
	}
	return &ConnectionError{"No answer from " + host + " (" + text + "): " + advice, reason, cause, unsent || reason == "dns" || reason == "refused"}
}

// isRetried says whether a call may be sent again; isSafe: even if the first attempt was carried out.
func isRetried(err error, isSafe bool) bool {
	var connection *ConnectionError
	var unexpected *UnexpectedResponseError
	if errors.As(err, &connection) {
		return connection.Reason != "tls" && (isSafe || connection.unsent)
	}
	if errors.As(err, &unexpected) && unexpected.cut {
		return isSafe
	}
	status, code, _ := answered(err)
	return isRetriedAnswer(status, code, isSafe)
}

// answered is what the answer said that an error is made of.
func answered(err error) (status int, code string, headers http.Header) {
	var unexpected *UnexpectedResponseError
	var answer *APIError
	if errors.As(err, &answer) {
		return answer.Status, answer.Code, answer.Headers
	}
	if errors.As(err, &unexpected) {
		return unexpected.Status, "", unexpected.Headers
	}
	return 0, "", nil
}

// pause is the time to the next attempt: what the server says, or a random time (full jitter).
func (t *transport) pause(err error, attempt int) time.Duration {
	_, _, headers := answered(err)
	if wait, ok := retryAfter(headers, t.now()); ok {
		return wait
	}
	longest := backoffMax
	if attempt < 4 {
		longest = backoffMin << attempt
	}
	return time.Duration(t.random() * float64(longest))
}

// retryAfter reads seconds or an HTTP date.
func retryAfter(headers http.Header, now time.Time) (time.Duration, bool) {
	text := headers.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if date, err := http.ParseTime(text); err == nil {
		wait := date.Sub(now)
		if wait < 0 {
			wait = 0
		}
		return wait, true
	}
	return 0, false
}

// newUUID makes a random UUID (RFC 9562, version 4).
func newUUID() (string, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", err
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}
