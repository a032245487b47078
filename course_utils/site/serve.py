"""Serve the pages on this machine: Python runs on a page that comes from a server, and not on one from a file."""

from __future__ import annotations

import functools
import http.server
import sys
from pathlib import Path
from typing import Any


class _Handler(http.server.SimpleHTTPRequestHandler):
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


def serving(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Return a server of this folder for this machine alone, which has a port and does not run yet.

    Args:
        port: 0 for any that is free.
    """
    return _Server(("127.0.0.1", port), functools.partial(_Handler, directory=str(folder)))
