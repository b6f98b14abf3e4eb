package postrider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
)

// field says how a field of a generated struct is written.
type field struct {
	index                       int
	name                        string
	omitsEmpty, query, explodes bool
}

// fixedParams are those of a method that sends the same fields in each call.
type fixedParams struct {
	Extra map[string]any `json:"-"`
}

var fieldsOfTypes sync.Map // reflect.Type -> []field

func fieldsOf(of reflect.Type) []field {
	if known, ok := fieldsOfTypes.Load(of); ok {
		return known.([]field)
	}
	var fields []field
	for i := 0; i < of.NumField(); i++ {
		name, option, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		query, inQuery := of.Field(i).Tag.Lookup("query")
		fields = append(fields, field{i, name, option == "omitempty", inQuery, query == "explode"})
	}
	fieldsOfTypes.Store(of, fields)
	return fields
}

// written calls write for each field that has a value, and then for those of Extra, which go before fields.
func written(object reflect.Value, write func(field, any) error) error {
	extra := object.FieldByName("Extra").Interface().(map[string]any)
	for _, field := range fieldsOf(object.Type()) {
		value := object.Field(field.index)
		if _, replaced := extra[field.name]; replaced || field.omitsEmpty && value.IsZero() {
			continue
		}
		if err := write(field, value.Interface()); err != nil {
			return err
		}
	}
	for name, value := range extra {
		if err := write(field{name: name}, value); err != nil {
			return err
		}
	}
	return nil
}

// encodeObject writes a generated struct as JSON.
func encodeObject(object any) ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	err := written(reflect.ValueOf(object), func(field field, value any) error {
		if field.query {
			return nil
		}
		if text.Len() > 1 {
			text.WriteByte(',')
		}
		if err := encodeValue(&text, field.name); err != nil {
			return err
		}
		text.WriteByte(':')
		return encodeValue(&text, value)
	})
	text.WriteByte('}')
	return text.Bytes(), err
}

// encodeValue does not escape <, > and &, which would make HTML longer.
func encodeValue(text *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	if err == nil {
		text.Truncate(text.Len() - 1) // the line break that Encode adds
	}
	return err
}

// decodeObject reads JSON into the struct that object points to. Unknown fields come into Extra.
func decodeObject(text []byte, object any) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	target := reflect.ValueOf(object).Elem()
	for _, field := range fieldsOf(target.Type()) {
		value, ok := values[field.name]
		if !ok {
			continue
		}
		delete(values, field.name)
		if err := json.Unmarshal(value, target.Field(field.index).Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	if len(values) == 0 {
		return nil
	}
	extra := make(map[string]any, len(values))
	for name, text := range values {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		extra[name] = value
	}
	target.FieldByName("Extra").Set(reflect.ValueOf(extra))
	return nil
}

// encodeQuery writes the fields of PARAMS that belong to the query; all, if the operation has no body.
func encodeQuery(params reflect.Value, all bool) url.Values {
	query := url.Values{}
	_ = written(params, func(field field, value any) error {
		if !field.query && !all {
			return nil
		}
		one := reflect.Indirect(reflect.ValueOf(value))
		var texts []string
		if one.Kind() == reflect.Slice {
			for i := 0; i < one.Len(); i++ {
				texts = append(texts, fmt.Sprint(one.Index(i)))
			}
		} else if one.IsValid() {
			texts = []string{fmt.Sprint(one)}
		}
		if field.explodes {
			query[field.name] = texts
		} else if len(texts) > 0 {
			query.Set(field.name, strings.Join(texts, ","))
		}
		return nil
	})
	return query
}

// String makes a pointer for an optional field.
func String(value string) *string { return &value }

// Int makes a pointer for an optional field.
func Int(value int64) *int64 { return &value }

// Float makes a pointer for an optional field.
func Float(value float64) *float64 { return &value }

// Bool makes a pointer for an optional field.
func Bool(value bool) *bool { return &value }
