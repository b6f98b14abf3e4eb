// Package postrider is the client of postrider's email API. All calls have the names of the API's reference:
//
//	client, err := postrider.New()
//	sent, err := client.Emails.Send(ctx, &postrider.SendEmailParams{…})
package postrider

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// settings are those of a client, and then of a call.
type settings struct {
	key, baseURL   string
	roundTripper   http.RoundTripper
	isInsecure     bool
	onWarning      func(operation, warning string)
	timeout        time.Duration
	maxRetries     int
	headers        http.Header
	idempotencyKey string
	ifMatch        string
	response       *Response
}

// Option is an option of New.
type Option interface{ applyToClient(*settings) }

// CallOption is an option of a call.
type CallOption interface{ applyToCall(*settings) }

type clientOption func(*settings)

func (o clientOption) applyToClient(s *settings) { o(s) }

type callOption func(*settings)

func (o callOption) applyToCall(s *settings) { o(s) }

// SharedOption is an option of New, for all calls, or of one call.
type SharedOption func(*settings)

func (o SharedOption) applyToClient(s *settings) { o(s) }
func (o SharedOption) applyToCall(s *settings)   { o(s) }

// WithAPIKey sets the API key. The default is the environment's POSTRIDER_API_KEY.
func WithAPIKey(key string) Option { return clientOption(func(s *settings) { s.key = key }) }

// WithBaseURL sets the address of the server. The default is the environment's POSTRIDER_BASE_URL.
func WithBaseURL(url string) Option { return clientOption(func(s *settings) { s.baseURL = url }) }

// WithTransport replaces the connections of net/http. Redirects are not followed in any case.
func WithTransport(transport http.RoundTripper) Option {
	return clientOption(func(s *settings) { s.roundTripper = transport })
}

// WithInsecureHTTP allows a base URL with http: for other hosts than this one. Everyone on the way can read the API key.
func WithInsecureHTTP() Option { return clientOption(func(s *settings) { s.isInsecure = true }) }

// WithOnWarning sets a function that gets the warnings of answers, for example about unknown fields.
func WithOnWarning(onWarning func(operation, warning string)) Option {
	return clientOption(func(s *settings) { s.onWarning = onWarning })
}

// WithTimeout sets the deadline of a call with its retries; the default is 30 s. An earlier deadline of the context wins.
func WithTimeout(timeout time.Duration) SharedOption {
	return func(s *settings) { s.timeout = timeout }
}

// WithMaxRetries sets how often a failed call is tried again; the default is 2.
func WithMaxRetries(count int) SharedOption { return func(s *settings) { s.maxRetries = count } }

// WithHeader sends a further header. A User-Agent is appended to the package's; Accept, Authorization, Content-Type and
// Service-Version stay the package's. Headers that frame the request, such as Transfer-Encoding, are refused.
func WithHeader(name, value string) SharedOption {
	return func(s *settings) {
		s.headers = s.headers.Clone()
		s.headers.Set(name, value)
	}
}

// WithIdempotencyKey makes calls with the same key and content one call. Without it each call has a key of its own.
func WithIdempotencyKey(key string) CallOption {
	return callOption(func(s *settings) { s.idempotencyKey = key })
}

// WithIfMatch changes a resource only if its ETag is still this one.
func WithIfMatch(etag string) CallOption { return callOption(func(s *settings) { s.ifMatch = etag }) }

// WithResponse fills response with the status and the headers of the call's last answer.
func WithResponse(response *Response) CallOption {
	return callOption(func(s *settings) { s.response = response })
}

// New makes a client. It may be used by several goroutines and keeps connections open, so one is enough for a program.
func New(options ...Option) (*Client, error) {
	s := settings{
		key: os.Getenv("POSTRIDER_API_KEY"), baseURL: os.Getenv("POSTRIDER_BASE_URL"),
		timeout: 30 * time.Second, maxRetries: 2, headers: http.Header{},
	}
	for _, option := range options {
		option.applyToClient(&s)
	}
	if s.key == "" {
		return nil, &ConfigurationError{"There is no API key: set POSTRIDER_API_KEY, or use WithAPIKey"}
	}
	if !isPrintable(s.key) || strings.Contains(s.key, " ") {
		return nil, &ConfigurationError{"The API key has a space, a line break or another character that keys do not have: copy it again"}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	base, err := parseBaseURL(s.baseURL, s.isInsecure)
	if err != nil {
		return nil, err
	}
	client := newClient(newTransport(base, s))
	client.transport.client = client
	return client, nil
}

// check refuses values that would change the meaning of a request.
func (s *settings) check() error {
	if s.timeout <= 0 || s.maxRetries < 0 {
		return &ConfigurationError{"The timeout must be more than 0, and the number of retries at least 0"}
	}
	if !isPrintable(s.idempotencyKey) || !isPrintable(s.ifMatch) {
		return &ConfigurationError{"The idempotency key and the value of If-Match may have printable ASCII characters only"}
	}
	for name, values := range s.headers {
		if isFraming(name) {
			return &ConfigurationError{"The header " + name + " cannot be set: the package writes it itself"}
		}
		isToken := name != "" && isPrintable(name) && !strings.ContainsAny(name, " \"(),/:;<=>?@[\\]{}")
		for _, value := range values {
			if !isToken || !isPrintable(value) {
				return &ConfigurationError{fmt.Sprintf("The header %q may have printable ASCII characters only", name)}
			}
		}
	}
	return nil
}

// isFraming: the header says where a request ends or how the connection is used.
func isFraming(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(http.CanonicalHeaderKey(name), "Proxy-")
}

func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(letter rune) bool { return letter < ' ' || letter > '~' }) < 0
}

func parseBaseURL(text string, isInsecure bool) (string, error) {
	if text == "" {
		return "", &ConfigurationError{"There is no base URL: set POSTRIDER_BASE_URL, or use WithBaseURL, to the address of your server, such as https://mail.example.com"}
	}
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Hostname() == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return "", &ConfigurationError{"The base URL is not the address of a server: it must begin with https://, without user, query and fragment"}
	}
	host := base.Hostname()
	isLocal := host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
	if base.Scheme == "http" && !isLocal && !isInsecure {
		return "", &ConfigurationError{"The base URL begins with http://, so everyone on the way to " + host + " could read the API key: use https://, or WithInsecureHTTP"}
	}
	return strings.TrimRight(base.String(), "/"), nil
}

// LastResponse describes the last answer to any call of this client; nil before the first one. Use WithResponse for the
// answer to a certain call.
func (c *Client) LastResponse() *Response { return c.transport.last.Load() }

// String does not show the API key.
func (c *Client) String() string { return "postrider.Client(" + c.transport.base + ")" }

// GoString does not show the API key.
func (c *Client) GoString() string { return c.String() }

// Format does not show the API key.
func (c *Client) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, c.String()) }
