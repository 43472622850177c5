"""The one `deniable` command. Every installed package adds its subcommands to it."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

_GROUP = "deniable.commands"
_EXTRAS = {
    "deniable": "cli",
    "deniable_collector": "collector",
    "deniable_estimator": "estimator",
}

_HELP = {
    "add": "Add a metric to a metrics.toml.",
    "annotate": "Note what happened on a day, like a release: charts show it.",
    "anomalies": "Find windows that honest reports cannot explain.",
    "collect": "Run the collector.",
    "compile": "Write the registry that ships inside an app.",
    "dashboard": "Run the dashboard.",
    "demo": "Let simulated devices report, and estimate what they have.",
    "dev": "See the reports of an app while you write it.",
    "digest": "Write what changed in the last weeks and what needs attention.",
    "discover": "Find strings that nobody listed.",
    "doctor": "Find out why no report arrives, and what to do.",
    "estimate": "Estimate how devices are spread over the values of a metric.",
    "gateway-key": "Make, rotate and show the keys of a gateway (two hops).",
    "init": "Write a first metrics.toml, an example and a compose file.",
    "lint": "Check a metrics.toml and show what each metric reveals.",
    "people": "People who may sign in to the dashboard.",
    "plan": "Compute what a metric can detect, before it is declared.",
    "privacy": "Show what the reports of a metric reveal at most.",
    "rappor": "Decode RAPPOR collections from google/rappor's files.",
    "relay": "Run a relay: it passes sealed batches to one gateway.",
    "release": "Publish numbers of a metric, and say what they reveal.",
    "sent": "Show what this device has reported, in words.",
    "simulate": "Draw a simulated crowd's reports of a metric, and estimate it.",
    "store": "Look into a store; export, import and drop its tallies.",
    "token": "Tokens for programs that read the dashboard's API.",
    "trend": "Show a metric over time, and which changes are more than noise.",
    "watch": "Tell what changed beyond noise, each change once.",
    "web": "Write the SDK for web pages.",
}
"""What `deniable --help` says of each command: importing all of them takes more than a second."""


def main() -> None:
    """Run the command. Without click, only `deniable sent` runs, which the owner of any device may
    need; for the others the error names the extra to install."""
    try:
        import click  # noqa: F401  (the SDK alone does not need it)
    except ModuleNotFoundError:
        if sys.argv[1:2] == ["sent"]:
            from deniable import sent_command

            sys.exit(sent_command.main(sys.argv[2:]))
        sys.exit(
            "deniable: all commands but `deniable sent` need click: install deniable with its "
            "extra cli, which a clone does by pip install '.[cli]'"
        )
    try:
        _group()(prog_name="deniable")
    except ModuleNotFoundError as error:
        for point in entry_points(group=_GROUP, name=sys.argv[1]):
            extra = _EXTRAS.get(point.module.partition(".")[0], "all")
            advice = f"install deniable with its extra {extra}"
            sys.exit(f"`deniable {point.name}` needs {error.name}: {advice}")
        raise


def _group() -> click.Group:
    import click

    import deniable

    class Commands(click.Group):
        """Finds subcommands among the entry points, and imports only the one that runs."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            return sorted(point.name for point in entry_points(group=_GROUP))

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            for point in entry_points(group=_GROUP, name=cmd_name):
                command: click.Command = point.load()
                return command
            # click suggests a near one among these.
            self.commands = dict.fromkeys(self.list_commands(ctx), click.Command(cmd_name))
            return None

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            with formatter.section("Commands"):
                formatter.write_dl(
                    [(name, _HELP.get(name, "")) for name in self.list_commands(ctx)]
                )

    @click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(deniable.__version__, prog_name="deniable")
    def deniable_command() -> None:
        """Telemetry with plausible deniability (local differential privacy, self-hosted)."""

    return deniable_command
