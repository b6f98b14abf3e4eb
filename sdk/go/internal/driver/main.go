// Command driver exposes the SDK to sdk/run: one JSON object per line in, one per line out (sdk/README.md).
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/postrider/postrider-go"
)

type object = map[string]any

type callRequest struct {
	Call    string          `json:"call"`
	Iterate string          `json:"iterate"`
	Path    []string        `json:"path"`
	Params  json.RawMessage `json:"params"`
	Options struct {
		IdempotencyKey string            `json:"idempotency_key"`
		IfMatch        string            `json:"if_match"`
		TimeoutMS      int64             `json:"timeout_ms"`
		MaxRetries     *int              `json:"max_retries"`
		CancelAfterMS  int64             `json:"cancel_after_ms"`
		Headers        map[string]string `json:"headers"`
	} `json:"options"`
	CountMax int `json:"count_max"`
}

type request struct {
	ID  any `json:"id"`
	New *struct {
		APIKey     *string `json:"api_key"`
		BaseURL    *string `json:"base_url"`
		TimeoutMS  int64   `json:"timeout_ms"`
		MaxRetries *int    `json:"max_retries"`
	} `json:"new"`
	callRequest
	Verify *struct {
		Payload    string         `json:"payload"`
		Headers    map[string]any `json:"headers"`
		Secrets    []string       `json:"secrets"`
		ToleranceS int64          `json:"tolerance_s"`
		Now        *int64         `json:"now"`
	} `json:"verify"`
	TestHeader *struct {
		Payload   string `json:"payload"`
		Secret    string `json:"secret"`
		Timestamp int64  `json:"timestamp"`
		EventID   string `json:"event_id"`
	} `json:"test_header"`
	Stream *struct {
		Types []postrider.WebhookEventType `json:"types"`
		After string                       `json:"after"`
		Count int                          `json:"count"`
	} `json:"stream"`
	ResolveUnconfirmed *callRequest `json:"resolve_unconfirmed"`
	WaitForEmail       *struct {
		To        *string `json:"to"`
		Subject   *string `json:"subject"`
		TimeoutMS int64   `json:"timeout_ms"`
	} `json:"wait_for_email"`
	LastResponse bool  `json:"last_response"`
	TimeoutMS    int64 `json:"timeout_ms"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	output := json.NewEncoder(os.Stdout)
	var client *postrider.Client
	for lines.Scan() {
		var wanted request
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		answer := object{"id": wanted.ID}
		if ok, err := wanted.play(&client); err != nil {
			answer["error"] = describe(err)
		} else {
			answer["ok"] = ok
		}
		if err := output.Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
}

func (r *request) play(client **postrider.Client) (any, error) {
	ctx := context.Background()
	switch {
	case r.New != nil:
		return object{}, r.makeClient(client)
	case r.Call != "":
		return call(ctx, *client, &r.callRequest)
	case r.Iterate != "":
		return iterate(ctx, *client, &r.callRequest)
	case r.Verify != nil:
		header, now := http.Header{}, time.Now()
		for name, value := range r.Verify.Headers {
			values, isList := value.([]any)
			if !isList {
				values = []any{value}
			}
			for _, one := range values {
				header[name] = append(header[name], fmt.Sprint(one))
			}
		}
		if r.Verify.Now != nil {
			now = time.Unix(*r.Verify.Now, 0)
		}
		tolerance := time.Duration(r.Verify.ToleranceS) * time.Second
		event, err := postrider.ConstructEventAt([]byte(r.Verify.Payload), header, r.Verify.Secrets, tolerance, now)
		return object{"data": event}, err
	case r.TestHeader != nil:
		at := time.Unix(r.TestHeader.Timestamp, 0)
		header, err := postrider.GenerateTestHeader([]byte(r.TestHeader.Payload), r.TestHeader.Secret, at, r.TestHeader.EventID)
		return object{"data": flat(header)}, err
	case r.Stream != nil:
		stream := (*client).WebhookEvents.Stream(ctx, &postrider.StreamParams{Types: r.Stream.Types, After: r.Stream.After})
		defer stream.Close()
		events := []*postrider.WebhookEvent{}
		for len(events) < r.Stream.Count && stream.Next() {
			events = append(events, stream.Value())
		}
		return object{"data": events}, stream.Err()
	case r.ResolveUnconfirmed != nil:
		_, err := call(ctx, *client, r.ResolveUnconfirmed)
		var unconfirmed *postrider.SendUnconfirmedError
		if !errors.As(err, &unconfirmed) {
			return nil, fmt.Errorf("the call should be unconfirmed: %w", err)
		}
		email, err := unconfirmed.Resolve(ctx, time.Duration(r.TimeoutMS)*time.Millisecond)
		return object{"data": email}, err
	case r.WaitForEmail != nil:
		params := postrider.WaitForEmailParams{To: r.WaitForEmail.To, Subject: r.WaitForEmail.Subject}
		params.Timeout = time.Duration(r.WaitForEmail.TimeoutMS) * time.Millisecond
		email, err := (*client).Dev.WaitForEmail(ctx, params)
		return object{"data": email}, err
	case r.LastResponse:
		last := (*client).LastResponse()
		var limit any
		if last.RateLimit != nil {
			limit = object{"limit": last.RateLimit.Limit, "remaining": last.RateLimit.Remaining, "reset": last.RateLimit.Reset}
		}
		return object{"data": object{"status": last.Status, "request_id": last.RequestID, "rate_limit": limit}}, nil
	}
	return nil, errors.New("the driver does not know this request")
}

func (r *request) makeClient(client **postrider.Client) error {
	var options []postrider.Option
	if r.New.APIKey != nil {
		options = append(options, postrider.WithAPIKey(*r.New.APIKey))
	}
	if r.New.BaseURL != nil {
		options = append(options, postrider.WithBaseURL(*r.New.BaseURL))
	}
	if r.New.TimeoutMS > 0 {
		options = append(options, postrider.WithTimeout(time.Duration(r.New.TimeoutMS)*time.Millisecond))
	}
	if r.New.MaxRetries != nil {
		options = append(options, postrider.WithMaxRetries(*r.New.MaxRetries))
	}
	made, err := postrider.New(options...)
	if err == nil {
		*client = made
	}
	return err
}

// method finds `emails.events.list` in the client, whatever its case.
func method(client *postrider.Client, name string) (reflect.Value, error) {
	value := reflect.ValueOf(client)
	parts := strings.Split(name, ".")
	for _, part := range parts[:len(parts)-1] {
		value = value.Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, part) })
		if !value.IsValid() {
			return value, fmt.Errorf("there is no resource %s", part)
		}
	}
	for i := 0; i < value.NumMethod(); i++ {
		if strings.EqualFold(value.Type().Method(i).Name, parts[len(parts)-1]) {
			return value.Method(i), nil
		}
	}
	return value, fmt.Errorf("there is no method %s", name)
}

func invoke(ctx context.Context, client *postrider.Client, name string, r *callRequest, response *postrider.Response) ([]reflect.Value, error) {
	found, err := method(client, name)
	if err != nil {
		return nil, err
	}
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < found.Type().NumIn()-1; i++ {
		of := found.Type().In(i)
		if of.Kind() == reflect.String {
			arguments = append(arguments, reflect.ValueOf(r.Path[i-1]).Convert(of))
			continue
		}
		params := reflect.New(of.Elem())
		if len(r.Params) > 0 {
			if err := json.Unmarshal(r.Params, params.Interface()); err != nil {
				return nil, err
			}
		}
		arguments = append(arguments, params)
	}
	options := []postrider.CallOption{postrider.WithResponse(response)}
	if r.Options.IdempotencyKey != "" {
		options = append(options, postrider.WithIdempotencyKey(r.Options.IdempotencyKey))
	}
	if r.Options.IfMatch != "" {
		options = append(options, postrider.WithIfMatch(r.Options.IfMatch))
	}
	if r.Options.TimeoutMS > 0 {
		options = append(options, postrider.WithTimeout(time.Duration(r.Options.TimeoutMS)*time.Millisecond))
	}
	if r.Options.MaxRetries != nil {
		options = append(options, postrider.WithMaxRetries(*r.Options.MaxRetries))
	}
	for name, value := range r.Options.Headers {
		options = append(options, postrider.WithHeader(name, value))
	}
	return found.CallSlice(append(arguments, reflect.ValueOf(options))), nil
}

func call(ctx context.Context, client *postrider.Client, r *callRequest) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.Options.CancelAfterMS > 0 {
		time.AfterFunc(time.Duration(r.Options.CancelAfterMS)*time.Millisecond, cancel)
	}
	var response postrider.Response
	results, err := invoke(ctx, client, r.Call, r, &response)
	if err == nil {
		err, _ = results[1].Interface().(error)
	}
	if err != nil {
		return nil, err
	}
	data := results[0].Interface()
	if content, ok := data.([]byte); ok {
		data = object{"base64": base64.StdEncoding.EncodeToString(content)}
	}
	answer := object{"data": data, "headers": flat(response.Headers), "request_id": response.RequestID, "warnings": response.Warnings}
	return answer, nil
}

func iterate(ctx context.Context, client *postrider.Client, r *callRequest) (any, error) {
	results, err := invoke(ctx, client, r.Iterate+"All", r, new(postrider.Response))
	if err != nil {
		return nil, err
	}
	items := []any{}
	next, value := results[0].MethodByName("Next"), results[0].MethodByName("Value")
	for len(items) < r.CountMax && next.Call(nil)[0].Bool() {
		items = append(items, value.Call(nil)[0].Interface())
	}
	err, _ = results[0].MethodByName("Err").Call(nil)[0].Interface().(error)
	return object{"data": items}, err
}

func flat(header http.Header) map[string]string {
	all := map[string]string{}
	for name := range header {
		all[strings.ToLower(name)] = header.Get(name)
	}
	return all
}

// describe writes an error with its fields in snake_case.
func describe(err error) object {
	class := strings.TrimPrefix(fmt.Sprintf("%T", err), "*postrider.")
	if class == "APIError" {
		class = "ApiError"
	}
	answer := object{"class": class, "message": err.Error()}
	fields(answer, reflect.Indirect(reflect.ValueOf(err)))
	answer["message"] = err.Error()
	return answer
}

func fields(answer object, value reflect.Value) {
	if value.Kind() != reflect.Struct {
		return
	}
	for i := 0; i < value.NumField(); i++ {
		field := value.Type().Field(i)
		switch {
		case field.Anonymous:
			fields(answer, value.Field(i))
		case !field.IsExported():
		case field.Type == reflect.TypeOf(http.Header{}):
			answer["headers"] = flat(value.Field(i).Interface().(http.Header))
		case field.Type == reflect.TypeOf(time.Duration(0)):
			answer[snake(field.Name)] = value.Field(i).Interface().(time.Duration).Seconds()
		default:
			answer[snake(field.Name)] = value.Field(i).Interface()
		}
	}
}

func snake(name string) string {
	var text bytes.Buffer
	for i, letter := range strings.NewReplacer("URL", "Url", "ID", "Id").Replace(name) {
		if letter >= 'A' && letter <= 'Z' && i > 0 {
			text.WriteByte('_')
		}
		text.WriteString(strings.ToLower(string(letter)))
	}
	return text.String()
}
