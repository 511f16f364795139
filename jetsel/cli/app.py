"""The `jetsel` command: its subcommands, and how their errors are printed and become exit codes."""

from __future__ import annotations

import importlib
import itertools
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jetsel import __version__
from jetsel.base.errors import ConfigError, JetselError
from jetsel.cli.calibrate import calibrate
from jetsel.cli.calibration import calibration
from jetsel.cli.classify import classify
from jetsel.cli.configuration import config
from jetsel.cli.demo import demo
from jetsel.cli.doctor import doctor
from jetsel.cli.evaluate import evaluate
from jetsel.cli.gateway import gateway
from jetsel.cli.install_service import install_service
from jetsel.cli.models import models
from jetsel.cli.options import print_json
from jetsel.cli.power import power
from jetsel.cli.serve import serve
from jetsel.cli.status import reload, status, top

EXIT_FAILED = 1
EXIT_USAGE = 2  # typer's own exit code for wrong options
EXIT_INTERRUPTED = 130

HELP = """For each image, the cheapest classifier that is likely to be right.

To try it: **jetsel demo**. To use it: **jetsel serve** in one terminal or as a service, \
then **jetsel classify cat.jpg** in another.

Exit status: 0 if everything was done and every image answered; 1 if something failed, or no daemon is listening; \
2 if the options or the configuration are wrong.
"""

UsageError: Any = typer.BadParameter.__mro__[1]  # the base class in click, or in the copy of click inside typer
_JSON = "jetsel.json"  # key in the context: whether --json was given
_ARGUMENTS = "jetsel.arguments"  # key in the context: the whole command line


class Commands(TyperGroup):
    """The group of subcommands; it prints an error of a subcommand as one line, and exits with the error's code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, but first remember them, and whether errors must be printed as JSON."""
        ctx.meta[_JSON], ctx.meta[_ARGUMENTS] = "--json" in args, list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the subcommand; if it fails, print the error and raise typer.Exit with the exit code."""
        try:
            check_values(self, ctx.meta[_ARGUMENTS])
            return super().invoke(ctx)
        except JetselError as error:
            _print_error(ctx, error.code, str(error), retry=error.retry)
            raise typer.Exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED) from None
        except UsageError as error:
            if not ctx.meta[_JSON]:
                raise  # typer prints the subcommand's usage line too
            _print_error(ctx, "usage", error.format_message())
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            if ctx.meta[_JSON]:
                _print_error(ctx, "interrupted", "stopped by Ctrl-C; run the same command again", retry=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


def check_values(command: Any, arguments: list[str]) -> None:
    """Raise UsageError if the command line has an empty value, or an option where the value of another is missing."""
    # Read the arguments as the parser will: an option that is no flag takes the next one as its value, and the name of
    # a subcommand makes the options after it those of the subcommand.
    pending_option = None  # the option whose value is next
    for text in itertools.takewhile(lambda text: text != "--", arguments):
        subcommands = getattr(command, "commands", {})
        parameters = [parameter for each in (command, *subcommands.values()) for parameter in each.params]
        options = {name: one for one in parameters if one.param_type_name == "option" for name in one.opts}
        name, equals, value = text.partition("=")
        if not text.strip() or (pending_option is None and name in options and equals and not value.strip()):
            raise UsageError(f"{pending_option or name.strip() or 'an argument'} is empty: give a value or omit it")
        if pending_option is not None and name in {*options, "--help"}:
            raise UsageError(f"{pending_option} has no value, {name} follows it: give it one, or leave it out")
        takes_next = pending_option is None and not equals and name in options and not options[name].is_flag
        pending_option, command = name if takes_next else None, subcommands.get(text, command)


def _print_error(ctx: Any, code: str, message: str, *, retry: bool = False) -> None:
    """Print an error as one line on standard error, or with --json as one object on standard output."""
    text = " ".join(message.split()).encode(errors="backslashreplace").decode()  # a path may not be UTF-8
    if ctx.meta[_JSON]:
        print_json({"error": code, "message": text, "retry": retry})
    else:
        typer.echo(f"jetsel: {text}", err=True)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"jetsel {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands, help=HELP, no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False
)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass  # typer needs this function to declare --version


for panel, commands in (
    ("Use", (classify, demo)),
    ("Operate", (serve, gateway, status, top, reload, config, doctor, install_service)),
    ("Choose better", (calibrate, evaluate)),
):
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(calibration, name="calibration", rich_help_panel="Choose better")
app.add_typer(models, name="models", rich_help_panel="Operate")
app.add_typer(power, name="power", rich_help_panel="Operate")

ADDONS = ("jetsel.addons.cameras.commands", "jetsel.addons.fleet.commands")
"""Modules with the add-ons' commands; each has a function `add_to`, which takes the application."""

for addon in ADDONS:
    importlib.import_module(addon).add_to(app)
