"""HTTP/2 by hand: frames and uncompressed headers, so that wrong ones can be sent too."""

import socket
import ssl
import struct
import threading

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
CANCEL, REFUSED_STREAM = 8, 7
LARGEST_WINDOW = 2**31 - 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value, bits):
    """An integer of HPACK, whose first byte has this many bits for it."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    text, value = bytes([limit]), value - limit
    while value >= 128:
        text, value = text + bytes([value % 128 + 128]), value // 128
    return text + bytes([value])


def header(name, value):
    """A header that is neither compressed nor put into the table."""
    name, value = name.encode(), value.encode()
    return b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value


class Connection:
    """A connection whose answers are read in the background, and counted by their kind."""

    def __init__(self, server, window=None, reads=True):
        context = ssl.create_default_context(cadata=server.authority)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((server.host, server.port), timeout=10)
        self.socket = context.wrap_socket(plain, server_hostname=server.host)
        self.socket.settimeout(30)
        self.fields = {":scheme": "https", ":authority": "x", "authorization": f"Bearer {server.token}"}
        self.counts, self.data, self.errors, self.goaway = {}, {}, {}, None
        self.closed = threading.Event()
        settings = b"" if window is None else struct.pack(">HI", INITIAL_WINDOW_SIZE, window)
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings))
        self.reader = threading.Thread(target=self._read, daemon=True)
        if reads:
            self.reader.start()

    def send(self, *texts):
        """Sends all of it; false if the server has closed the connection, or does not read any more."""
        try:
            self.socket.sendall(b"".join(texts))
            return not self.closed.is_set()
        except (OSError, ValueError):
            return False

    def block(self, path, method="GET", **more):
        """The headers of a request."""
        fields = {":method": method, ":path": path, **self.fields, **more}
        return b"".join(header(name, value) for name, value in fields.items())

    def request(self, stream, path, method="GET", ends=True):
        return frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, self.block(path, method))

    def count(self, kind):
        return self.counts.get(kind, 0)

    def close(self):
        self.closed.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        # Another connection may get the same number of a file as soon as this one is closed.
        if self.reader.is_alive():
            self.reader.join()
        self.socket.close()

    def _read(self):
        buffered = b""
        try:
            while part := self.socket.recv(1 << 16):
                buffered = self._take(buffered + part)
        except (OSError, ValueError):
            pass
        self.closed.set()

    def _take(self, text):
        while len(text) >= 9 and len(text) >= (end := 9 + int.from_bytes(text[:3], "big")):
            kind, stream, payload = text[3], int.from_bytes(text[5:9], "big"), text[9:end]
            self.counts[kind] = self.count(kind) + 1
            if kind == DATA:
                self.data[stream] = self.data.get(stream, b"") + payload
                # What was read may be sent again, on the connection and on the stream.
                more = struct.pack(">I", max(len(payload), 1))
                self.send(frame(WINDOW_UPDATE, 0, 0, more), frame(WINDOW_UPDATE, 0, stream, more))
            elif kind == RST_STREAM:
                code = int.from_bytes(payload, "big")
                self.errors[code] = self.errors.get(code, 0) + 1
            elif kind == GOAWAY:
                self.goaway = int.from_bytes(payload[4:8], "big")
            text = text[end:]
        return text
