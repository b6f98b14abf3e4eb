package postrider

import (
	"context"
	"errors"
	"io"
	"net/http"
)

const webhookBytesMax = 1 << 20

// WebhookHandler verifies webhooks and passes their events to handle. If handle fails, the answer is 500, and the server
// delivers the webhook again.
func WebhookHandler(secrets []string, handle func(context.Context, *WebhookEvent) error) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPost {
			http.Error(writer, "Webhooks are POST requests", http.StatusMethodNotAllowed)
			return
		}
		payload, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, webhookBytesMax))
		if err != nil {
			http.Error(writer, "The body cannot be read", http.StatusRequestEntityTooLarge)
			return
		}
		event, err := ConstructEvent(payload, request.Header, secrets, DefaultTolerance)
		var misconfigured *ConfigurationError
		if errors.As(err, &misconfigured) {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		if err != nil {
			http.Error(writer, err.Error(), http.StatusUnauthorized)
			return
		}
		if err := handle(request.Context(), event); err != nil {
			http.Error(writer, "The webhook could not be handled", http.StatusInternalServerError)
			return
		}
		writer.WriteHeader(http.StatusNoContent)
	})
}
