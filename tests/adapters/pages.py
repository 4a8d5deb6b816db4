"""An HTTP server of fixed pages on a real socket, and a simple search in texts to check readings against."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Pages(dict[str, tuple[int, str]]):
    """Path -> (status, text) of a running server."""

    url = ""
    asked: list[str]


@contextmanager
def serving() -> Iterator[Pages]:
    """A server of pages that ends with the block; other paths are 404."""
    pages = Pages()
    pages.asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append(self.path)
            status, text = pages.get(self.path, (404, "nothing here"))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    pages.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield pages
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def written(text: str, start: str) -> float:
    """The number at the end of the one line that begins so."""
    lines = [line for line in text.splitlines() if line.startswith(start)]
    assert len(lines) == 1, (start, lines)
    return float(lines[0].rsplit(" ", 1)[1])
