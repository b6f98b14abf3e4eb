package postrider

// Iterator walks the items of all pages of a list. It fetches a page when it needs it.
//
//	emails := client.Emails.ListAll(ctx, nil)
//	for emails.Next() {
//		fmt.Println(emails.Value().Subject)
//	}
//	if err := emails.Err(); err != nil { … }
type Iterator[T any] struct {
	fetch func(cursor *string) (items []T, next *string, hasMore bool, err error)
	// items are those of the current page after the current one.
	items  []T
	value  T
	cursor *string
	seen   map[string]bool
	done   bool
	err    error
}

// Next moves to the next item. It returns false at the end and after an error.
func (i *Iterator[T]) Next() bool {
	for len(i.items) == 0 {
		if i.done || i.err != nil {
			return false
		}
		items, next, hasMore, err := i.fetch(i.cursor)
		if err != nil {
			i.err = err
			return false
		}
		if hasMore && (next == nil || *next == "" || i.seen[*next]) {
			i.err = &UnexpectedResponseError{Message: "The server repeats a cursor or says none, so the list would not end: check the server's version", Status: 200}
		} else if hasMore {
			if i.seen == nil {
				i.seen = map[string]bool{}
			}
			i.seen[*next] = true
		}
		i.items, i.cursor, i.done = items, next, !hasMore
	}
	i.value, i.items = i.items[0], i.items[1:]
	return true
}

// Value is the current item.
func (i *Iterator[T]) Value() T { return i.value }

// Err is the error that ended the iteration, or nil.
func (i *Iterator[T]) Err() error {
	if len(i.items) > 0 {
		return nil
	}
	return i.err
}
