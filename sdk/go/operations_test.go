package postrider

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

type operations struct {
	WebhookEvents []struct {
		Type    string
		Example json.RawMessage
	} `json:"webhook_events"`
}

// readOperations reads sdk/operations.json, which a copy of this package alone does not have.
func readOperations(t *testing.T) operations {
	t.Helper()
	text, err := os.ReadFile("../operations.json")
	if err != nil {
		t.Skip(err)
	}
	var read operations
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// sameJSON compares values; a field that is null may be absent. ID and cursor of a WebhookEvent do not count.
func sameJSON(t *testing.T, written, wanted []byte) bool {
	t.Helper()
	var a, b map[string]any
	if json.Unmarshal(written, &a) != nil || json.Unmarshal(wanted, &b) != nil {
		return false
	}
	delete(a, "id")
	return reflect.DeepEqual(withoutNulls(a), withoutNulls(b))
}

func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			if one == nil {
				delete(value, name)
			} else {
				value[name] = withoutNulls(one)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutNulls(value[i])
		}
	}
	return value
}

func TestObjectsKeepWhatTheyDoNotKnow(t *testing.T) {
	var step AutomationStep
	text := `{"type":"delay","duration":"1d","key":null}`
	if err := json.Unmarshal([]byte(text), &step); err != nil || step.Extra["duration"] != "1d" || step.Key != nil {
		t.Fatal(step, err)
	}
	written, err := json.Marshal(step)
	if err != nil || string(written) != `{"type":"delay","duration":"1d"}` {
		t.Fatal(string(written), err)
	}
}

func TestParams(t *testing.T) {
	for want, params := range map[string]any{
		`{}`: &SendEmailParams{},
		`{"to":["a"],"subject":"","html":"<p>&</p>","unsubscribe":false}`: &SendEmailParams{To: []string{"a"}, Subject: String(""), HTML: String("<p>&</p>"), Unsubscribe: Bool(false)},
		`{"allowed_ips":[]}`:                         &UpdateAPIKeyParams{AllowedIPs: []string{}},
		`{"tracking_host":null}`:                     &UpdateDomainParams{TrackingHost: String("replaced"), Extra: map[string]any{"tracking_host": nil}},
		`{"tls_mode":"enforced"}`:                    &UpdateDomainParams{TLSMode: TLSModeEnforced},
		`{"name":"a.txt","data":"VGVybXM="}`:         &EmailAttachment{Name: "a.txt", Data: []byte("Terms")},
		`{"template":{"id":"tpl_1","version":2}}`:    &SendEmailParams{Template: EmailTemplate{ID: String("tpl_1"), Version: Int(2)}},
		`{"variables":{"name":"Grace"},"version":2}`: &PreviewTemplateParams{Variables: map[string]any{"name": "Grace"}, Version: 2},
	} {
		written, err := encodeObject(reflect.ValueOf(params).Elem().Interface())
		if err != nil || string(written) != want {
			t.Errorf("%s instead of %s %v", written, want, err)
		}
	}
}
