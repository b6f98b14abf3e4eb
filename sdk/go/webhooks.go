package postrider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DefaultTolerance is how far the time of a webhook may be from this machine's.
const DefaultTolerance = 5 * time.Minute

// WebhookEvent is an event of a webhook or of the event stream.
type WebhookEvent struct {
	// ID is the same in all deliveries of an event.
	ID        string           `json:"id"`
	Type      WebhookEventType `json:"type"`
	CreatedAt string           `json:"created_at"`
	// Data is a pointer to the struct of the type, for example *EmailDeliveredData; map[string]any for a type that this
	// version does not know.
	Data any `json:"data"`
	// Cursor is the place in the event stream; empty in webhooks.
	Cursor string `json:"cursor,omitempty"`
}

// ConstructEvent verifies the signature of a webhook and reads it. payload is the body as it came; one of the secrets
// must fit; a tolerance of 0 is DefaultTolerance.
func ConstructEvent(payload []byte, header http.Header, secrets []string, tolerance time.Duration) (*WebhookEvent, error) {
	return ConstructEventAt(payload, header, secrets, tolerance, time.Now())
}

// ConstructEventAt is ConstructEvent at another time, for tests.
func ConstructEventAt(payload []byte, header http.Header, secrets []string, tolerance time.Duration, now time.Time) (*WebhookEvent, error) {
	var given []string
	for _, secret := range secrets {
		if secret = strings.TrimSpace(secret); secret != "" {
			given = append(given, secret)
		}
	}
	if secrets = given; len(secrets) == 0 {
		return nil, &ConfigurationError{"There is no webhook secret: it is in the answer to Webhooks.Create"}
	}
	if tolerance <= 0 {
		tolerance = DefaultTolerance
	}
	id := headerOf(header, "webhook-id")
	var signed string
	if time, signatures := serviceSignature(headerOf(header, "service-signature")); isSigned(signatures, secrets, func(secret string) []byte {
		return sum([]byte(secret), time+".", payload)
	}) {
		signed = time
	}
	// One valid signature with a current time suffices.
	time := headerOf(header, "webhook-timestamp")
	if signatures := standardSignatures(headerOf(header, "webhook-signature")); checkTime(signed, tolerance, now) != nil && isSigned(signatures, secrets, func(secret string) []byte {
		key, err := standardKey(secret)
		if err != nil || len(key) == 0 {
			return nil
		}
		return sum(key, id+"."+time+".", payload)
	}) {
		signed = time
	}
	if signed == "" {
		return nil, &SignatureError{"The webhook has no signature that fits: check the secret, and that the body is passed as it came"}
	}
	if err := checkTime(signed, tolerance, now); err != nil {
		return nil, err
	}
	event, err := parseEvent(payload)
	if err != nil {
		return nil, &SignatureError{"The webhook is signed, but not an event: " + err.Error()}
	}
	if event.ID == "" {
		event.ID = id
	}
	return event, nil
}

func checkTime(signed string, tolerance time.Duration, now time.Time) error {
	seconds, err := strconv.ParseInt(signed, 10, 64)
	if err != nil {
		return &SignatureError{"The webhook's time is not a number of seconds"}
	}
	at := time.Unix(seconds, 0)
	if distance := now.Sub(at); distance > tolerance || distance < -tolerance {
		text := "The webhook was signed at %s, and it is %s here, more than %v apart: check this machine's clock, or an old webhook was sent again"
		text = fmt.Sprintf(text, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), tolerance)
		return &TimestampError{SignatureError{text}}
	}
	return nil
}

// headerOf finds a header whatever its case. The values of one that occurs several times are joined by commas
// (RFC 9110, 5.2).
func headerOf(header http.Header, name string) string {
	var all []string
	for key, values := range header {
		if strings.EqualFold(key, name) {
			all = append(all, values...)
		}
	}
	return strings.Join(all, ", ")
}

// serviceSignature reads `t=…,v1=…[,v1=…]`. The first time counts.
func serviceSignature(text string) (time string, signatures [][]byte) {
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if name == "t" && time == "" {
			time = value
		} else if signature, err := hex.DecodeString(value); name == "v1" && err == nil {
			signatures = append(signatures, signature)
		}
	}
	return time, signatures
}

var standardSignature = regexp.MustCompile(`(?:^|[\s,])v1,([A-Za-z0-9+/=]+)`)

// standardSignatures reads `v1,… [v1,…]` (Standard Webhooks), also if repeated headers were joined by commas.
func standardSignatures(text string) (signatures [][]byte) {
	for _, part := range standardSignature.FindAllStringSubmatch(text, -1) {
		if signature, err := base64.StdEncoding.DecodeString(part[1]); err == nil {
			signatures = append(signatures, signature)
		}
	}
	return signatures
}

func standardKey(secret string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
}

func sum(key []byte, prefix string, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(prefix))
	mac.Write(payload)
	return mac.Sum(nil)
}

func isSigned(signatures [][]byte, secrets []string, wanted func(secret string) []byte) bool {
	fits := false
	for _, secret := range secrets {
		expected := wanted(secret)
		for _, signature := range signatures {
			fits = expected != nil && hmac.Equal(signature, expected) || fits
		}
	}
	return fits
}

func parseEvent(payload []byte) (*WebhookEvent, error) {
	var from struct {
		ID        string           `json:"id"`
		Type      WebhookEventType `json:"type"`
		CreatedAt string           `json:"created_at"`
		Data      json.RawMessage  `json:"data"`
	}
	if err := json.Unmarshal(payload, &from); err != nil {
		return nil, err
	}
	if from.Type == "" || !strings.HasPrefix(string(from.Data), "{") {
		return nil, errors.New("it has no type, or no object as data")
	}
	event := &WebhookEvent{ID: from.ID, Type: from.Type, CreatedAt: from.CreatedAt}
	var named struct {
		EventID string `json:"event_id"`
	}
	if json.Unmarshal(from.Data, &named) == nil && event.ID == "" {
		event.ID = named.EventID
	}
	// Data of another shape than this version knows is passed on like that of an unknown type.
	if event.Data = newEventData(from.Type); event.Data != nil && json.Unmarshal(from.Data, event.Data) == nil {
		return event, nil
	}
	event.Data = nil
	return event, json.Unmarshal(from.Data, &event.Data)
}

// GenerateTestHeader makes the headers of a webhook, for tests of an application.
func GenerateTestHeader(payload []byte, secret string, at time.Time, id string) (http.Header, error) {
	key, err := standardKey(secret)
	if err != nil {
		return nil, &ConfigurationError{"The secret must be whsec_ and base64"}
	}
	time := strconv.FormatInt(at.Unix(), 10)
	header := http.Header{}
	header.Set("Service-Signature", "t="+time+",v1="+hex.EncodeToString(sum([]byte(secret), time+".", payload)))
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", time)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(key, id+"."+time+".", payload)))
	return header, nil
}
