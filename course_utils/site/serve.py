"""Serve the pages on this machine: Python runs on a page that comes from a server, and not on one from a file."""

from __future__ import annotations

import contextlib
import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class FileHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the types that browsers ask for, and writes no line for each of them."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    """A server to which it is no error that a browser closes a page before all of it is sent."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serving(folder: Path, handler: type[FileHandler] = FileHandler) -> Iterator[str]:
    """Serve this folder to this machine alone while the block runs, and return the address."""
    with _Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
