"""A Redis Cluster of our own: masters with a replica each, on this machine."""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import redis
from tests.ports import free_port, until

NODE_TIMEOUT = 2_000
"""Milliseconds after which a node that does not answer counts as failed."""

OPTIONS = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT), "--save", "")
OPTIONS += ("--appendonly", "no", "--bind", "127.0.0.1", "--daemonize", "no")
OPTIONS += ("--repl-diskless-sync-delay", "0", "--cluster-allow-replica-migration", "no")


@dataclass
class Node:
    """One process of the cluster."""

    port: int
    process: subprocess.Popen[bytes]

    def ask(self, *command):
        with closing(redis.Redis(port=self.port)) as client:
            return client.execute_command(*command)

    @property
    def id(self):
        return self.ask("CLUSTER MYID").decode()

    def kill(self):
        self.process.kill()
        self.process.wait()


@dataclass
class Cluster:
    """Its nodes; the first of them are the masters that it began with."""

    binary: str
    folder: Path
    nodes: list[Node] = field(default_factory=list)

    @property
    def url(self):
        """An address that names two of the nodes: the driver finds the others."""
        places = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:2])
        return f"redis+cluster://{places}"

    def start(self):
        for _ in range(6):
            self.add()
        places = [f"127.0.0.1:{node.port}" for node in self.nodes]
        self.cli("create", *places, "--cluster-replicas", "1", "--cluster-yes")
        self.wait_for_agreement()
        # Who follows whom gets around a little later.
        until(lambda: all(map(self._lists_all, self.nodes)), "a node does not know all others")

    def _lists_all(self, node):
        slots = node.ask("CLUSTER SLOTS")
        return len({place[1] for _, _, *nodes in slots for place in nodes}) == len(self.nodes)

    def add(self):
        """Start a process that is in no cluster yet."""
        port = free_port()
        folder = self.folder / str(port)
        folder.mkdir()
        command = [self.binary, "--dir", str(folder), *OPTIONS, "--port", str(port)]
        node = Node(port, subprocess.Popen(command, stdout=subprocess.DEVNULL))
        self.nodes.append(node)
        until(lambda: up(node), "a node does not answer")
        return node

    def wait_for_agreement(self):
        """Wait until all nodes agree that all slots are served, and replicas follow."""
        until(lambda: all(map(self._agrees, self.nodes)), "no agreement")

    def _agrees(self, node):
        info = node.ask("CLUSTER INFO")
        if isinstance(info, bytes):
            info = dict(line.split(":", 1) for line in info.decode().splitlines())
        if info["cluster_state"] != "ok" or int(info["cluster_known_nodes"]) != len(self.nodes):
            return False
        replication = node.ask("INFO", "replication")
        return replication["role"] == "master" or replication["master_link_status"] == "up"

    def cli(self, *command):
        """`redis-cli --cluster`, at the first node."""
        done = subprocess.run(
            ["redis-cli", "--cluster", *command], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def owner(self, key):
        """The master that serves a key now."""
        asked = next(node for node in self.nodes if node.process.poll() is None)
        slot = asked.ask("CLUSTER KEYSLOT", key)
        for first, last, master, *_ in asked.ask("CLUSTER SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        raise AssertionError("nobody serves this slot")

    def replica_of(self, master):
        """The node that follows a master."""
        for node in self.nodes:
            alive = node is not master and node.process.poll() is None
            if alive and node.ask("INFO", "replication").get("master_port") == master.port:
                return node
        raise AssertionError("nobody follows this master")

    def stop(self):
        for node in self.nodes:
            node.kill()


def up(node):
    try:
        return bool(node.ask("PING"))
    except redis.ConnectionError:
        return False
