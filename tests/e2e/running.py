"""What journeys share: waiting, a web site of some files, commands, what a store has counted."""

import os
import shlex
import shutil
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from tests.ports import until
from tests.stores import window_reports
from tests.tools import leave_out

from deniable_collector.settings import Settings
from deniable_collector.stores import open_store


def with_program(folder):
    """The PATH with a folder in which this interpreter and its `deniable` are. What else lies
    beside the interpreter is left out: a package there brings an older Redis."""
    programs = folder / "bin"
    programs.mkdir()
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    deniable = f"#!{sys.executable}\nfrom deniable.cli import main\nmain()\n"
    for name, text in (("python", python), ("python3", python), ("deniable", deniable)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return f"{programs}{os.pathsep}{os.environ['PATH']}"


def until_answered(address):
    """Wait until a server answers at this address."""

    def answered():
        try:
            with urllib.request.urlopen(address, timeout=5):
                return True
        except OSError:
            return False

    until(answered)


def calculated(dashboard, token):
    """Wait until a dashboard has calculated all that its overview shows: browsers and a cold
    dashboard on one machine make each other slow."""
    request = urllib.request.Request(
        f"{dashboard}/", headers={"Authorization": f"Bearer {token}", "Accept-Language": "en"}
    )

    def whole():
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status == 200 and b"being calculated" not in answer.read()

    until(whole)


def counted(store, metric, window=""):
    """How many reports of a metric a store has, in one window or in all."""
    with closing(open_store(Settings(store=store))) as opened:
        scheme = metric.scheme.fingerprint
        windows = [window] if window else opened.windows(metric.name, scheme)
        return sum(window_reports(opened, (metric.name, scheme), windows).values())


def ran(command, folder, environ, timeout=600):
    """A command that has ended, well or badly, with what it printed."""
    return subprocess.run(
        shlex.split(command) if isinstance(command, str) else command,
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run(command, folder, environ, timeout=600):
    """What a command prints that ends well."""
    done = ran(command, folder, environ, timeout)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def serving(folder, headers):
    """The address of a web site of these files; its headers may be changed meanwhile."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self):
            for name, text in headers.items():
                self.send_header(name, text)
            super().end_headers()

        def log_message(self, *arguments):
            """Nothing: the tests' output is for the tests."""

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def firefox(address, folder):
    """Firefox at this address, with a profile below a folder."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        leave_out("firefox-esr")
    (folder / "profile").mkdir()
    options = ["--headless", "--no-remote", "--profile", str(folder / "profile")]
    with subprocess.Popen(
        [str(program), *options, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as browser:
        try:
            yield
        finally:
            browser.terminate()
