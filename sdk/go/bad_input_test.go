package postrider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

const account = `{"account":{"id":"acc_1"}}`

func TestBadAnswersGiveTypedErrorsThatSayWhatToDo(t *testing.T) {
	html := "<html>Blocked</html>"
	for name, one := range map[string]struct {
		answer http.HandlerFunc
		class  any
		says   string
	}{
		"web site":        {text(200, "text/html", html), &UnexpectedResponseError{}, "base URL"},
		"proxy page":      {text(403, "text/html", html), &UnexpectedResponseError{}, "proxy"},
		"proxy 413":       {text(413, "text/html", html), &UnexpectedResponseError{}, "raise the proxy's limit"},
		"empty 200":       {answers(200, ""), &UnexpectedResponseError{}, "empty"},
		"null":            {answers(200, "null"), &UnexpectedResponseError{}, "proxy"},
		"array":           {answers(200, "[1]"), &UnexpectedResponseError{}, "proxy"},
		"wrong type":      {answers(200, `{"account":{"id":7}}`), &UnexpectedResponseError{}, "account: id"},
		"other error":     {answers(422, `{"error":"no"}`), &UnexpectedResponseError{}, "proxy"},
		"redirect":        {text(302, "", "", "Location", "https://evil.example/"), &UnexpectedResponseError{}, "evil.example"},
		"10 MB error":     {text(400, "application/json", strings.Repeat("x", 10<<20)), &UnexpectedResponseError{}, "proxy"},
		"cut body":        {raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", false, false), &UnexpectedResponseError{}, "too early"},
		"reset in body":   {raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", false, true), &UnexpectedResponseError{}, "too early"},
		"reset":           {raw("", false, true), &ConnectionError{}, "lost"},
		"no HTTP":         {raw("220 mail.example ESMTP\r\n", false, false), &ConnectionError{}, "base URL"},
		"no answer":       {raw("", true, false), &TimeoutError{}, "timeout"},
		"slow headers":    {raw("HTTP/1.1 200 OK\r\nX-Slow: a", true, false), &TimeoutError{}, "timeout"},
		"slow body":       {raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", true, false), &TimeoutError{}, "timeout"},
		"headers of 2 MB": {raw("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 2<<20), false, false), &ConnectionError{}, "headers"},
		"echo of the key": {text(400, "text/plain", "Authorization: Bearer "+testKey), &UnexpectedResponseError{}, "proxy"},
		"key in an error": {answers(401, `{"error":{"message":"Unknown key `+testKey+`","code":"unauthorized"}}`), &AuthenticationError{}, "[API key]"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, one.answer)
			client, _ := clientOf(t, server.URL, WithMaxRetries(0), WithTimeout(400*time.Millisecond))
			if _, ok := one.class.(*TimeoutError); !ok {
				client.transport.settings.timeout = 20 * time.Second
			}
			_, err := client.Account.Get(context.Background())
			if reflect.TypeOf(err) != reflect.TypeOf(one.class) || !strings.Contains(err.Error(), one.says) {
				t.Fatalf("%T %v", err, err)
			}
			var unexpected *UnexpectedResponseError
			if errors.As(err, &unexpected) && len([]rune(unexpected.Excerpt)) > 200 {
				t.Fatal("the excerpt is long")
			}
			var all Error
			if !errors.As(err, &all) {
				t.Fatal("not an Error")
			}
			noKey(t, err)
		})
	}
}

// noKey fails if a value shows the API key in any form.
func noKey(t *testing.T, value any) {
	t.Helper()
	written, _ := json.Marshal(value)
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %q", value, value, value, value, value), string(written)} {
		if strings.Contains(shown, testKey) {
			t.Fatalf("shows the key: %s", shown)
		}
	}
}

func TestClientsDoNotShowTheKey(t *testing.T) {
	client, _ := clientOf(t, "https://mail.example")
	for _, value := range []any{client, *client, client.Emails, *client.Emails, client.transport, client.transport.settings, client.transport.http} {
		noKey(t, value)
	}
	if fmt.Sprint(client) != "postrider.Client(https://mail.example)" {
		t.Fatal(client)
	}
}

func TestNothingListensAtTheBaseURL(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	for base, reason := range map[string]string{"http://" + listener.Addr().String(): "refused", "https://no-such-host.invalid": "dns"} {
		client, _ := clientOf(t, base, WithMaxRetries(0))
		_, err := client.Account.Get(context.Background())
		var connection *ConnectionError
		if !errors.As(err, &connection) || connection.Reason != reason && reason != "dns" {
			t.Fatalf("%s: %v", base, err)
		}
	}
}

func TestTLSFailures(t *testing.T) {
	untrusted := httptest.NewTLSServer(answers(200, account))
	defer untrusted.Close()
	plain := serve(t, answers(200, account))
	for _, base := range []string{untrusted.URL, strings.Replace(plain.URL, "http:", "https:", 1)} {
		client, pauses := clientOf(t, base, WithTimeout(2*time.Second))
		_, err := client.Account.Get(context.Background())
		var connection *ConnectionError
		if !errors.As(err, &connection) || connection.Reason != "tls" || len(*pauses) != 0 {
			t.Fatalf("%s: %v", base, err)
		}
	}
}

func TestASlowTLSHandshakeIsATimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	own := &http.Transport{TLSHandshakeTimeout: 50 * time.Millisecond}
	for _, options := range [][]Option{{WithTimeout(200 * time.Millisecond)}, {WithTransport(own)}} {
		client, pauses := clientOf(t, "https://"+silent.Addr().String(), options...)
		_, err := client.Account.Get(context.Background())
		var slow *TimeoutError
		if !errors.As(err, &slow) || len(*pauses) != 0 {
			t.Fatal(err)
		}
	}
}

func TestHeadersOfTheCaller(t *testing.T) {
	server := serve(t, answers(200, account))
	client, _ := clientOf(t, server.URL, WithHeader("user-agent", "shop/1.0"))
	if _, err := client.Account.Get(context.Background(), WithHeader("Accept", "text/html"), WithHeader("Authorization", "no"), WithHeader("X-Own", "1")); err != nil {
		t.Fatal(err)
	}
	got := server.requests[0].Header
	if got.Get("Accept") != "application/json" || got.Get("Authorization") != "Bearer "+testKey || got.Get("X-Own") != "1" || got.Get("User-Agent") != "postrider-go/"+Version+" shop/1.0" {
		t.Fatal(got)
	}
	for _, name := range []string{"Transfer-Encoding", "content-length", "HOST", "Connection", "te", "Proxy-Authorization"} {
		var configuration *ConfigurationError
		if _, err := client.Account.Get(context.Background(), WithHeader(name, "1")); !errors.As(err, &configuration) {
			t.Error(name, err)
		}
		if _, err := New(WithAPIKey(testKey), WithBaseURL(server.URL), WithHeader(name, "1")); !errors.As(err, &configuration) {
			t.Error(name, err)
		}
	}
}

func TestConfigurationErrors(t *testing.T) {
	t.Setenv("POSTRIDER_API_KEY", "")
	t.Setenv("POSTRIDER_BASE_URL", "")
	for name, one := range map[string]struct {
		key, base, says string
	}{
		"no key":         {"", "https://mail.example", "POSTRIDER_API_KEY"},
		"newline in key": {testKey + "\nX-Evil: 1", "https://mail.example", "line break"},
		"no base URL":    {testKey, "", "POSTRIDER_BASE_URL"},
		"no scheme":      {testKey, "mail.example", "https://"},
		"insecure":       {testKey, "http://192.0.2.1", "https://"},
		"user":           {testKey, "https://u:secret@mail.example", "without user"},
		"no URL":         {testKey, "https://mail example", "address"},
	} {
		_, err := New(WithAPIKey(one.key), WithBaseURL(one.base))
		var configuration *ConfigurationError
		if !errors.As(err, &configuration) || !strings.Contains(err.Error(), one.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		noKey(t, err)
	}
	if _, err := New(WithAPIKey(testKey), WithBaseURL("http://192.0.2.1"), WithInsecureHTTP()); err != nil {
		t.Error(err)
	}
}

func TestCallsAreCheckedBeforeTheyAreSent(t *testing.T) {
	server := serve(t, answers(200, account))
	client, _ := clientOf(t, server.URL)
	var configuration *ConfigurationError
	for _, option := range []CallOption{WithIdempotencyKey("a\r\nX-Evil: 1"), WithIfMatch("é"), WithHeader("X-A", "a\nb"), WithHeader("X A", "a"), WithTimeout(0)} {
		if _, err := send(client, option); !errors.As(err, &configuration) {
			t.Error(err)
		}
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := client.Emails.Get(context.Background(), id); !errors.As(err, &configuration) {
			t.Error(id, err)
		}
	}
	if _, err := client.Events.Send(context.Background(), &SendEventParams{Data: map[string]any{"a": func() {}}}); !errors.As(err, &configuration) {
		t.Error(err)
	}
	if server.seen() != 0 {
		t.Error("a request was sent")
	}
}

func TestCancelledCalls(t *testing.T) {
	entered := make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, request *http.Request) {
		close(entered)
		<-request.Context().Done()
	})
	client, _ := clientOf(t, server.URL)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-entered
		cancel()
	}()
	_, err := client.Account.Get(ctx)
	var cancelled *CancelledError
	if !errors.As(err, &cancelled) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%T %v", err, err)
	}
}

func TestNewerServers(t *testing.T) {
	server := serve(t, answers(200, `{"email":{"id":"msg_1","status":"teleported","warp":{"x":[1]}},"warnings":["a field"]}`))
	var warned string
	client, _ := clientOf(t, server.URL, WithOnWarning(func(operation, warning string) { warned = operation + ": " + warning }))
	answer, err := client.Emails.Get(context.Background(), "../a?b")
	if err != nil || answer.Email.Status != "teleported" || answer.Email.Extra["warp"] == nil || warned != "emails.get: a field" {
		t.Fatal(answer, err, warned)
	}
	if got := server.requests[0].URL.EscapedPath(); got != "/emails/..%2Fa%3Fb" {
		t.Fatal(got)
	}
	if written, err := json.Marshal(answer.Email); err != nil || !strings.Contains(string(written), `"warp":{"x":[1]}`) {
		t.Fatal(string(written), err)
	}
}

func TestFilesOfProxies(t *testing.T) {
	server := serve(t, text(200, "text/html", "<html>"), text(200, "text/plain", "zone"))
	client, _ := clientOf(t, server.URL)
	var unexpected *UnexpectedResponseError
	if _, err := client.Domains.ZoneFile(context.Background(), "example.com"); !errors.As(err, &unexpected) {
		t.Fatal(err)
	}
	if zone, err := client.Domains.ZoneFile(context.Background(), "example.com"); err != nil || zone != "zone" {
		t.Fatal(zone, err)
	}
}
