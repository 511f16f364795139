"""`jetsel edge trace`: what the way to the edge and back takes, again and again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import CalibrationError, ConfigError, JetselError
from jetsel.cli.options import ConfigFile

REDUCED_PX = (448, 320, 224, 160, 112)

if TYPE_CHECKING:
    from jetsel.base.config import Power
    from jetsel.power.sampler import Sampler


def trace(
    photo: Annotated[Path, typer.Argument(metavar="IMAGE", help="Image to send, of a usual size.", show_default=False)],
    count: Annotated[int, typer.Option(min=1, help="Number of requests.")] = 300,
    every_ms: Annotated[float, typer.Option(min=0, help="Minimum time between two requests, in ms.")] = 100.0,
    patience_ms: Annotated[float, typer.Option(min=1, help="Longer times are capped at this value, in ms.")] = 2000.0,
    model: Annotated[str | None, typer.Option(help="Model of the edge server (default: the first).")] = None,
    config: ConfigFile = None,
) -> None:
    """Record the times of sending images to the edge server and receiving answers, for `jetsel simulate --network`.

    Each line has a time in ms, without the server's own time, and the number of bytes sent. Whole and reduced images
    alternate. If power is measured and idle power is known, the command also prints the energy of 1,000 bytes,
    edge.mj_per_kb.
    """
    from jetsel.base.files import open_regular
    from jetsel.cli.edge.opened import ask, check_models, opened
    from jetsel.edge.runner import EdgeAnswer, Photograph
    from jetsel.image import decode, jpeg

    try:
        with open_regular(photo) as opened_file:
            content = opened_file.read()
    except OSError as error:
        raise ConfigError(f"{photo}: {error.strerror}: name an image") from None
    with opened(config) as (site, family, edge):
        whole = decode(content, site.limits, family.decode_px).bgr
        files = [content, *(jpeg(whole, px) for px in REDUCED_PX if px < min(whole.shape[:2]))]
        names = list(site.config.edge.models)
        name = model or names[0]
        if name not in names or site.config.edge.models[name].input != "encoded":
            known = ", ".join(name for name in names if site.config.edge.models[name].input == "encoded") or "none"
            raise ConfigError(f"--model {name}: name a model of the edge server that takes files: {known}")
        check_models(edge, name)
        meter = _Meter(site.config.power)
        server_told, failed, carried_bytes, last = 0, 0, 0, ""
        for number in range(count):
            begun_s, file = time.monotonic(), files[number % len(files)]
            told = ask(edge, name, Photograph(file), patience_ms)
            took_ms = patience_ms
            if isinstance(told, EdgeAnswer):
                took_ms = min(patience_ms, told.result.total_ms - (told.result.server_ms or 0.0))
                server_told += told.result.server_ms is not None
                carried_bytes += told.result.sent_bytes + told.result.received_bytes
            else:
                failed, last = failed + 1, str(told)
            typer.echo(f"{took_ms:.3f} {len(file)}")
            meter.look()
            time.sleep(max(0.0, every_ms / 1e3 - (time.monotonic() - begun_s)))
        if failed:
            typer.echo(f"{failed} of {count} requests failed; the last: {last}", err=True)
        if server_told < count - failed:
            typer.echo("the server does not report its own time, so the times include it", err=True)
        typer.echo(meter.tell(carried_bytes), err=True)


class _Meter:
    """What sending takes above idle power, if that can be known."""

    def __init__(self, power: Power) -> None:
        from jetsel.power.sampler import READY_S, Sampler

        self._power = power
        self._sampler: Sampler | None = None if power.sensor == "none" else Sampler(power)
        if self._sampler is not None:
            self._sampler.ready(READY_S)
        self._seen_ns, self._taken = time.monotonic_ns(), (0.0, 0.0, 0)

    def look(self) -> None:
        """Take in what was measured since the last look; samples are kept for two minutes."""
        if self._sampler is not None:
            passed, self._seen_ns = self._sampler.since(self._seen_ns)
            joules, known_s, new_values = self._taken
            self._taken = joules + passed.energy_j, known_s + passed.known_s, new_values + passed.new_values

    def tell(self, carried_bytes: int) -> str:
        """Return what to configure, or why that is not known."""
        try:
            return f"mj_per_kb = {self._energy_mj() / (carried_bytes / 1e3):.3f}"
        except (JetselError, ZeroDivisionError) as error:
            return f"the energy of sending is unknown: {error or 'nothing was sent'}"
        finally:
            if self._sampler is not None:
                self._sampler.stop()

    def _energy_mj(self) -> float:
        from jetsel.base.config import power_folder
        from jetsel.power.idle import load
        from jetsel.power.integration import FEWEST
        from jetsel.power.machine import look

        sampler = self._sampler
        if sampler is None or sampler.reason is not None:
            raise CalibrationError('[power] sensor is "none"' if sampler is None else str(sampler.reason))
        facts = look(self._power)
        board, mode = sampler.board or facts.board.value, facts.power_mode.value
        idle = load(power_folder(self._power), board, mode, sampler.total_of)
        joules, known_s, new_values = self._taken
        above_mj = (joules - idle.mean_w * known_s) * 1e3
        if new_values < FEWEST or above_mj <= 1e3 * idle.half_width_w * known_s:
            raise CalibrationError(
                "the measured power does not exceed idle power by more than the measurement error: send more images at "
                "shorter intervals"
            )
        return above_mj
