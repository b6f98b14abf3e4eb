"""`WebhookReceiver`: an HTTP server that keeps the webhooks that the server delivers."""

import http.server
import json
import threading


class WebhookReceiver:
    def __init__(self):
        self.deliveries, self.arrived = [], threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                with receiver.arrived:
                    receiver.deliveries.append({"body": body, "headers": dict(self.headers.items())})
                    receiver.arrived.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def wait(self, kind, timeout_s):
        """The first delivery of an event type; None if it does not come in time."""
        def found():
            return next((one for one in self.deliveries if json.loads(one["body"])["type"] == kind), None)

        with self.arrived:
            self.arrived.wait_for(found, timeout_s)
            return found()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
