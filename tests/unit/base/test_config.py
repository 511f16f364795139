"""The configuration: its defaults, what each mistake is told in one line, and that what is printed reads back."""

import re
from pathlib import Path

import pytest
import tomli_w
from hypothesis import example, given
from hypothesis import strategies as st

from jetsel.base.config import EXAMPLES, SECTIONS, Config, Models, Power, ServerSettings, calibrations_folder, parse
from jetsel.base.errors import ConfigError
from jetsel.cli.configuration import as_toml


def said(text: str) -> str:
    """The one line that this configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    assert "; example: " in line
    return line


def test_a_misspelt_key_brings_the_near_one_with_its_example() -> None:
    line = said("[server]\nqueue_request = 1\n")
    assert "(did you mean queue_requests?)" in line
    assert line.endswith("; example: queue_requests = 128")
    assert "(did you mean server?)" in said("[servr]\nworkers = 1\n")


def test_sections_of_add_ons_are_accepted_and_a_typo_in_the_name_of_one_is_not() -> None:
    assert parse("[yard]\nqueu = 1", ["yard"]) == Config()
    with pytest.raises(ConfigError, match=r"yrad: there is no such key \(did you mean yard\?\)"):
        parse("[yrad]", ["yard"])


@pytest.mark.parametrize(
    ("text", "key", "wrong"),
    [
        pytest.param("[server]\nworkers = 0", "server.workers", ">= 1", id="too few"),
        pytest.param("[server]\nworkers = true", "server.workers", "got `bool`", id="a truth for a count"),
        pytest.param("[server]\nqueue_mb = nan", "server.queue_mb", "> 0", id="not a number"),
        pytest.param("[power]\nrate_hz = 1000", "power.rate_hz", "rate_hz = 20 (1 to 100", id="a former rate"),
        pytest.param('[server]\nendpoint = "ipc://j.sock"', "server.endpoint", "wrong form", id="a relative path"),
        pytest.param("[server]\npeers_mb = 31", "server.peers_mb", "cannot hold two", id="no room for the largest"),
        pytest.param("[models]\npaths = [1]", "models.paths", "got `int`", id="a number in a list"),
        pytest.param('[log]\nlevel = "loud"', "log.level", "loud", id="no such choice"),
    ],
)
def test_a_wrong_value_is_told_by_its_key_with_an_example(text: str, key: str, wrong: str) -> None:
    line = said(text)
    assert re.match(rf"{re.escape(key)}(\[\d\])?: ", line), line
    assert wrong in line
    section = key.partition(".")[0]
    expected = EXAMPLES.get(key) or next(e for k, e in EXAMPLES.items() if k.startswith(section))
    assert line.endswith(f"; example: {expected}")


def test_one_edge_is_named_or_several_each_once() -> None:
    assert parse('[edge]\nurl = "http://a:1/"').edge.urls == ["http://a:1"]
    assert parse('[edge]\nurl = ["http://b", "http://a", "http://b/"]').edge.urls == ["http://b", "http://a"]
    assert parse("").edge.urls == []
    for wrong in ("[]", '["http://a", "b"]', "7"):
        assert re.match(r"edge\.url(\[1\])?: ", line := said(f"[edge]\nurl = {wrong}")), line
        assert line.endswith(EXAMPLES["edge.url"])


@pytest.mark.parametrize(
    "text",
    ["[server", "workers: 2", "=", "[server]\nworkers = 1\nworkers = 2", "\0", "\ud800", "a = " + "[" * 5000],
    ids=["open", "yaml", "bare", "twice", "zero byte", "surrogate", "deep"],
)
def test_what_is_no_toml_is_told_so(text: str) -> None:
    assert said(text).startswith("not TOML: ")


@given(
    st.text(max_size=60)
    | st.dictionaries(st.sampled_from([*Config.__struct_fields__, "x", "a\nb"]), st.integers()).map(tomli_w.dumps)
)
@example('[server]\n"a\\nb" = 1')
@example('[server]\n"a`b" = 1')
@example("power = 1")
@example('[log]\nlevel = "a\\nb"')
def test_any_text_is_a_configuration_or_is_refused_in_one_line(text: str) -> None:
    try:
        assert isinstance(parse(text), Config)
    except ConfigError as error:
        line = str(error)
    else:
        return
    assert len(line.splitlines()) == 1
    assert "example: " in line


def test_what_is_printed_reads_back_whatever_its_names_hold() -> None:
    odd = ["a b", 'é"\n', "", "x.y"]
    config = Config(
        server=ServerSettings(group=odd[1]),
        models=Models(paths=odd, backends=dict.fromkeys(odd, "tensorrt")),
        power=Power(labels=dict(zip(odd, odd, strict=True)), budget_w=0.1),
    )
    assert parse(as_toml(config, SECTIONS, {})) == config


@pytest.mark.parametrize(
    ("user", "has_system", "environment", "expected"),
    [
        pytest.param(1000, False, {}, "/home/me/.local/share/jetsel/calibrations", id="a person"),
        pytest.param(1000, False, {"XDG_DATA_HOME": "/data"}, "/data/jetsel/calibrations", id="a person's data"),
        pytest.param(
            1000, False, {"XDG_DATA_HOME": "data"}, "/home/me/.local/share/jetsel/calibrations", id="a relative one"
        ),
        pytest.param(1000, False, {"HOME": ""}, "SYSTEM/calibrations", id="nobody's home"),
        pytest.param(1000, True, {"XDG_DATA_HOME": "/data"}, "SYSTEM/calibrations", id="a person beside a service"),
        pytest.param(0, False, {}, "SYSTEM/calibrations", id="root"),
        pytest.param(990, True, {"STATE_DIRECTORY": "/srv/a:/srv/b"}, "/srv/a/calibrations", id="the service itself"),
    ],
)
def test_where_nothing_is_configured_there_is_one_place_for_a_machine_and_else_one_for_a_person(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    has_system: bool,
    environment: dict[str, str],
    expected: str,
) -> None:
    system = tmp_path / "jetsel"
    if has_system:
        system.symlink_to("private/jetsel")  # as systemd's DynamicUser leaves it to others: it leads nowhere for them
    monkeypatch.setattr("jetsel.base.state.SYSTEM_STATE", str(system))
    monkeypatch.setattr("os.geteuid", lambda: user)
    found = calibrations_folder(Models(), {"HOME": "/home/me", **environment})
    assert str(found) == expected.replace("SYSTEM", str(system))
    assert str(calibrations_folder(Models(calibrations="/mine"), environment)) == "/mine"


def test_a_setting_of_an_earlier_version_is_refused_with_what_replaces_it() -> None:
    with pytest.raises(ConfigError, match=r"power\.battery_reserve_percent: .* removed: use power\.budget_w"):
        parse("[power]\nbattery_reserve_percent = 20")


def test_the_default_and_the_range_are_told_beside_another_value() -> None:
    config = parse('[log]\nlevel = "error"\n[server]\nqueue_requests = 7\n[edge.models.xl]\nremote = "x"')
    printed = as_toml(config, SECTIONS, {})
    assert "(1 to 100,000; default 128).\nqueue_requests = 7\n" in printed
    assert '(debug, error, info, warning; default "info").\nlevel = "error"\n' in printed
    assert printed.index("[edge.models.xl]") > printed.index("mj_per_kb = "), "what follows a table belongs to it"
