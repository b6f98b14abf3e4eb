//go:build go1.23

package postrider

import "iter"

// All is for the range statement. An error is the last pair.
//
//	for email, err := range client.Emails.ListAll(ctx, nil).All() { … }
func (i *Iterator[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for i.Next() {
			if !yield(i.value, nil) {
				return
			}
		}
		if i.err != nil {
			var none T
			yield(none, i.err)
		}
	}
}

// All is for the range statement. It closes the stream at the end of the loop. An error is the last pair.
func (s *EventStream) All() iter.Seq2[*WebhookEvent, error] {
	return func(yield func(*WebhookEvent, error) bool) {
		defer s.Close()
		for s.Next() {
			if !yield(s.value, nil) {
				return
			}
		}
		if s.err != nil {
			yield(nil, s.err)
		}
	}
}
