"""A running `kopf cluster`, and what was tried on it."""

import base64
import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import time

START_SECONDS_MAX = 60
# Some answers have hundreds of warnings, one header each.
http.client._MAXHEADERS = 10_000


class Results:
    def __init__(self):
        self.rows = []

    def add(self, area, what, expected, got, held):
        """`held` is None if the attack could not be tried."""
        verdict = {True: "held", False: "FAILED", None: "not tried"}[held]
        self.rows.append((area, what, str(expected), str(got)[:160], verdict))
        print(f"{verdict:9} {area}: {what}: {str(got)[:160]}", flush=True)

    def count(self, verdict):
        return sum(row[-1] == verdict for row in self.rows)

    def failed(self):
        return self.count("FAILED")

    def totals(self):
        return f"{len(self.rows)} tried, {self.count('held')} held, {self.failed()} FAILED, {self.count('not tried')} not tried"

    def table(self):
        lines = ["| area | tried | expected | got | verdict |", "|---|---|---|---|---|"]
        clean = lambda text: text.replace("|", "\\|").replace("\n", " ")
        lines += ["| " + " | ".join(map(clean, row)) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


class Server:
    """Starts the server; stops it at the end of a `with` block."""

    def __init__(self, kopf, folder, *options, port=0):
        self.command = [kopf, "cluster", f"--port={port}", "--no-nodes", *options]
        self.kubeconfig = pathlib.Path(folder) / f"kubeconfig-{time.monotonic_ns()}"
        self.command.append(f"--kubeconfig={self.kubeconfig}")

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.kubeconfig.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("`kopf cluster` did not start")
            time.sleep(0.02)
        text = self.kubeconfig.read_text()
        address = re.search(r"server:\s*\"?https://([^\"\s]+)", text)[1]
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.token = re.search(r"token:\s*\"?([^\"\s]+)", text)[1]
        self.authority = base64.b64decode(re.search(r"certificate-authority-data:\s*\"?([^\"\s]+)", text)[1]).decode()
        self.context = ssl.create_default_context(cadata=self.authority)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def rss(self):
        """Resident memory in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) // 1024

    def cpu(self):
        """Processor time in seconds."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def raw(self, timeout=10):
        """A TLS connection without HTTP."""
        plain = socket.create_connection((self.host, self.port), timeout=timeout)
        return self.context.wrap_socket(plain, server_hostname=self.host)

    def send(self, text, timeout=10):
        """What the server answers to raw bytes; its first line, or how the connection ended."""
        try:
            with self.raw(timeout) as connection:
                connection.sendall(text)
                answer = connection.recv(65536)
                return answer.split(b"\r\n")[0].decode(errors="replace") or "closed"
        except (ConnectionError, ssl.SSLError) as error:
            return f"closed ({type(error).__name__})"
        except TimeoutError:
            return "no answer"

    def request(self, method, path, body=None, token="", headers=None, timeout=60, kind="application/json"):
        """The status and the decoded answer; `token` is that of the administrator unless given."""
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)
        sent = dict(headers or {})
        token = self.token if token == "" else token
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if body is not None:
            sent.setdefault("Content-Type", kind)
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read()
        except (ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
            return 0, {"message": f"closed ({type(error).__name__})"}
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {"message": text.decode(errors="replace")}
