package postrider

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	silenceMax    = time.Minute
	eventBytesMax = 1 << 20
)

// StreamParams are those of WebhookEvents.Stream.
type StreamParams struct {
	// Types are the types of events; none means all.
	Types []WebhookEventType
	// After is the Cursor of the last event; empty means events from now on.
	After string
}

// EventStream yields events as they happen. It reconnects after a lost connection, and resumes after the last event.
//
//	events := client.WebhookEvents.Stream(ctx, nil)
//	defer events.Close()
//	for events.Next() {
//		fmt.Println(events.Value().Type)
//	}
//	if err := events.Err(); err != nil { … }
type EventStream struct {
	transport   *transport
	ctx         context.Context
	close       context.CancelFunc
	target      string
	cursor      string
	isConnected bool
	failures    int
	// body and lines are those of the connection; nil without one.
	body    io.ReadCloser
	lines   *bufio.Scanner
	drop    context.CancelFunc
	silence *time.Timer
	value   *WebhookEvent
	err     error
}

// Stream reads the event stream until ctx ends, Close is called, or the API refuses (401, 403).
func (r *WebhookEventsResource) Stream(ctx context.Context, params *StreamParams) *EventStream {
	stream := &EventStream{transport: r.transport, target: "/webhook-events"}
	stream.ctx, stream.close = context.WithCancel(ctx)
	if params != nil {
		stream.cursor = params.After
		var types []string
		for _, one := range params.Types {
			types = append(types, string(one))
		}
		if types != nil {
			stream.target += "?" + url.Values{"types": {strings.Join(types, ",")}}.Encode()
		}
	}
	return stream
}

// Next waits for the next event. It returns false when the stream has ended.
func (s *EventStream) Next() bool {
	for s.err == nil {
		err := s.ctx.Err()
		if err == nil && s.body == nil {
			err = s.connect()
		}
		if err == nil {
			if s.value, err = s.read(); err == nil {
				s.failures = 0
				return true
			}
			s.disconnect()
		}
		if s.ctx.Err() == nil && s.isAgain(err) {
			err = s.transport.sleep(s.ctx, s.transport.pause(err, s.failures))
			s.failures++
		}
		if s.ctx.Err() != nil {
			s.err = ended(s.ctx, "The deadline of the event stream's context passed")
		} else if err != nil {
			s.err = err
		}
	}
	return false
}

// isAgain: a stream that has never been connected tries as often as a call, so that a wrong base URL is noticed.
func (s *EventStream) isAgain(err error) bool {
	var slow *TimeoutError
	status, _, _ := answered(err)
	isLost := isRetried(err, true) || errors.As(err, &slow) || s.isConnected && status >= 500
	return isLost && (s.isConnected || s.failures < s.transport.settings.maxRetries)
}

// Value is the current event.
func (s *EventStream) Value() *WebhookEvent { return s.value }

// Err is the error that ended the stream.
func (s *EventStream) Err() error { return s.err }

// Close ends the stream, also a Next that waits.
func (s *EventStream) Close() { s.close() }

func (s *EventStream) connect() error {
	headers := s.transport.settings.headers.Clone()
	headers.Set("Accept", "text/event-stream")
	headers.Set("Accept-Encoding", "identity")
	if s.cursor != "" {
		headers.Set("Last-Event-ID", s.cursor)
	}
	ctx, drop := context.WithCancel(s.ctx)
	s.drop, s.silence = drop, time.AfterFunc(silenceMax, drop)
	got, response, err := s.transport.send(ctx, http.MethodGet, s.target, headers, nil)
	if err != nil {
		s.disconnect()
		var cancelled *CancelledError
		if s.ctx.Err() == nil && errors.As(err, &cancelled) {
			return lostStream(err)
		}
		return err
	}
	s.body = got.Body
	if mediaType(got.Header) != "text/event-stream" {
		s.disconnect()
		return s.transport.unexpected(response, []byte("(not an event stream)"))
	}
	s.isConnected = true
	s.lines = bufio.NewScanner(s.body)
	s.lines.Buffer(nil, eventBytesMax+1)
	return nil
}

func (s *EventStream) disconnect() {
	s.silence.Stop()
	s.drop()
	if s.body != nil {
		_ = s.body.Close()
		s.body = nil
	}
}

func lostStream(cause error) error {
	return &ConnectionError{"The connection of the event stream was lost", "reset", cause, false}
}

// read reads one event (HTML Living Standard, 9.2).
func (s *EventStream) read() (*WebhookEvent, error) {
	var data strings.Builder
	cursor, size := s.cursor, 0
	// The time that the caller spends with an event does not count.
	defer s.silence.Stop()
	for s.silence.Reset(silenceMax); s.lines.Scan(); s.silence.Reset(silenceMax) {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		size += len(s.lines.Bytes()) + 1
		switch {
		case size > eventBytesMax:
			return nil, tooLargeEvent()
		case name == "id":
			cursor = value
		case name == "data":
			data.WriteString(value + "\n")
		case s.lines.Text() == "" && data.Len() > 0:
			event, err := parseEvent([]byte(data.String()))
			if err != nil {
				return nil, &UnexpectedResponseError{Message: "An event of the stream is not JSON with type and data: check the proxy in front of the server", Status: 200}
			}
			s.cursor, event.Cursor = cursor, cursor
			return event, nil
		case s.lines.Text() == "":
			s.cursor, size = cursor, 0
		}
	}
	if errors.Is(s.lines.Err(), bufio.ErrTooLong) {
		return nil, tooLargeEvent()
	}
	return nil, lostStream(s.lines.Err())
}

func tooLargeEvent() error {
	return &UnexpectedResponseError{Message: "An event of the stream is larger than 1 MiB: check the proxy in front of the server", Status: 200}
}
