"""A small Redis Cluster whose first master can be cut off from the other nodes, but not from us.

Each node announces ports of ours, which pass on to its own. The nodes speak from two addresses of
the loopback, so that we know who is calling: the first master, another node, or a collector.
"""

from __future__ import annotations

import select
import socket
import subprocess
import threading
from contextlib import closing, suppress
from pathlib import Path

import redis
from tests.ports import free_port
from tests.stores import wait_until

from .clusters import OPTIONS

FIRST, OTHERS = "127.0.0.2", "127.0.0.3"
SLOTS = ((0, 5460), (5461, 10922), (10923, 16383))


class Gate:
    """Passes connections to a port on, unless the cut is between its two ends."""

    def __init__(self, owner: PartedCluster, host: str, port: int) -> None:
        self._owner, self._target = owner, (host, port)
        self._server = socket.create_server((host, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, address = self._server.accept()
                threading.Thread(target=self._pass, args=(client, address[0]), daemon=True).start()

    def _pass(self, client: socket.socket, source: str) -> None:
        between = {source, self._target[0]} == {FIRST, OTHERS}
        with suppress(OSError), client:
            if between and self._owner.cut:
                return
            with socket.create_connection(self._target) as server:
                while not (between and self._owner.cut):
                    ready, _, _ = select.select([client, server], [], [], 0.02)
                    for each in ready:
                        data = each.recv(65_536)
                        if not data:
                            return
                        (server if each is client else client).sendall(data)


class PartedCluster:
    """Three masters, and a replica of the first."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.cut = False
        self._processes: list[subprocess.Popen[bytes]] = []
        self._gates: list[Gate] = []
        self.places: list[tuple[str, int]] = []
        buses: list[int] = []
        for number, host in enumerate((FIRST, OTHERS, OTHERS, OTHERS)):
            port = free_port()
            client, bus = Gate(self, host, port), Gate(self, host, port + 10_000)
            self._gates += [client, bus]
            (folder / str(number)).mkdir()
            command = [binary, *OPTIONS, "--bind", host, "--bind-source-addr", host]
            command += ["--port", str(port), "--dir", str(folder / str(number))]
            command += ["--protected-mode", "no", "--cluster-announce-ip", host]
            command += ["--cluster-announce-port", str(client.port)]
            command += ["--cluster-announce-bus-port", str(bus.port), "--repl-timeout", "2"]
            self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            self.places.append((host, client.port))
            buses.append(bus.port)
        for number in range(4):
            wait_until(lambda number=number: self._up(number), "a node does not answer")
        for number, slots in enumerate(SLOTS):
            self.ask(number, "CLUSTER", "ADDSLOTSRANGE", *slots)
            self.ask(number, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for (host, port), bus in zip(self.places[1:], buses[1:], strict=True):
            self.ask(0, "CLUSTER", "MEET", host, port, bus)
        wait_until(lambda: all(self._knows(number) for number in range(4)), "they do not meet")
        first = self.ask(0, "CLUSTER", "MYID")
        self.ask(3, "CLUSTER", "REPLICATE", first)
        wait_until(lambda: self.follows(3), "the replica does not follow")

    @property
    def url(self) -> str:
        """An address that names the second and the third master."""
        return "redis+cluster://" + ",".join(f"{host}:{port}" for host, port in self.places[1:3])

    def ask(self, number: int, *command: object) -> object:
        host, port = self.places[number]
        with closing(redis.Redis(host=host, port=port)) as client:
            return client.execute_command(*command)

    def role(self, number: int) -> str:
        host, port = self.places[number]
        with closing(redis.Redis(host=host, port=port)) as client:
            return str(client.info("replication")["role"])

    def follows(self, number: int) -> bool:
        host, port = self.places[number]
        with closing(redis.Redis(host=host, port=port)) as client:
            found = client.info("replication")
        return found["role"] == "slave" and found["master_link_status"] == "up"

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for gate in self._gates:
            gate.close()

    def _up(self, number: int) -> bool:
        try:
            return bool(self.ask(number, "PING"))
        except redis.ConnectionError:
            return False

    def _knows(self, number: int) -> bool:
        host, port = self.places[number]
        with closing(redis.Redis(host=host, port=port)) as client:
            info = client.cluster("INFO")
        return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "4"
