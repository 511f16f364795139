"""The sections of jetsel.toml, those of add-ons included: each key has an example, which the file takes."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.addons.cameras.config import SECTIONS as CAMERAS
from jetsel.addons.cameras.config import Camera
from jetsel.base.config import SECTIONS as CORE
from jetsel.base.config import Config, Models
from jetsel.base.errors import ConfigError, UnknownFamilyError
from jetsel.base.sections import Sections
from jetsel.cli.configuration import addon_sections, as_toml, heading_and_meanings
from jetsel.site import config_file
from jetsel.site.config_file import endpoint_of
from jetsel.site.site import open_site
from tests.unit.daemon.families import put_family

ALL = [CORE, *addon_sections()]


def read(folder: Path, text: str, sections: Sections[Any]) -> Any:
    file = folder / "jetsel.toml"
    file.write_text(text, encoding="utf-8")
    core = config_file.read(file)
    return core if sections is CORE else config_file.read_sections(file, sections)


def keys(sections: Sections[Any]) -> set[str]:
    """Every key of these sections."""
    found = set()
    for section in sections.kind.__struct_fields__:
        kind = Camera if section == "cameras" else type(getattr(sections.kind(), section))
        found |= {f"{section}.{key}" for key in kind.__struct_fields__}
    return found


def in_section(section: str, line: str) -> str:
    """A file with this line; a camera has what each must have, too."""
    if section != "cameras":
        return f"[{section}]\n{line}\n"
    required = {"name": 'name = "yard"', "source": 'source = "0"'}
    required.pop(line.partition(" = ")[0], None)
    return "\n".join(["[[cameras]]", *required.values(), line, ""])


@pytest.mark.parametrize("sections", ALL, ids=[sections.kind.__name__ for sections in ALL])
def test_every_key_has_an_example_that_can_be_copied_into_a_file(tmp_path: Path, sections: Sections[Any]) -> None:
    assert keys(sections) == set(sections.examples)
    for key, line in sections.examples.items():
        section, _, name = key.partition(".")
        copied = re.sub(r" \(.*\)$", "", line)  # what stands in brackets after it explains it
        values = read(tmp_path, in_section(section, copied), sections)
        found = getattr(values, section)
        assert copied.startswith(f"{name} = ")
        value = getattr(found[0] if isinstance(found, list) else found, name)
        assert msgspec.to_builtins(value) == msgspec.toml.decode(copied)[name]
        assert read(tmp_path, as_toml(values, sections, {}), sections) == values


@pytest.mark.parametrize("sections", ALL, ids=[sections.kind.__name__ for sections in ALL])
def test_every_key_is_explained_even_where_it_has_no_value(sections: Sections[Any]) -> None:
    printed = as_toml(sections.kind(), sections, {})
    for section in sections.kind.__struct_fields__:
        kind = Camera if section == "cameras" else type(getattr(sections.kind(), section))
        heading, meanings = heading_and_meanings(kind)
        assert heading in printed
        assert tuple(meanings) == kind.__struct_fields__, "one line of the docstring for each, in their order"
        for key in meanings:
            assert re.search(rf"^(# )?(\w+\. Example: )?{key} = ", printed, re.MULTILINE), key


def test_a_camera_is_named_by_its_place_and_two_have_not_one_name(tmp_path: Path) -> None:
    camera = '[[cameras]]\nname = "a"\nsource = "0"\n'
    with pytest.raises(ConfigError, match=r"cameras\[0\]\.gatte: there is no such key \(did you mean gate\?\)"):
        read(tmp_path, f"{camera}gatte = 1", CAMERAS)
    with pytest.raises(ConfigError, match="two cameras have the name a"):
        read(tmp_path, camera * 2, CAMERAS)


def test_the_address_is_the_one_given_or_the_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JETSEL_ENDPOINT", raising=False)
    config = tmp_path / "jetsel.toml"
    config.write_text('[server]\nendpoint = "ipc:///run/own.sock"\n')
    assert endpoint_of("ipc:///given.sock", config) == "ipc:///given.sock"
    assert endpoint_of(None, config) == "ipc:///run/own.sock"
    assert endpoint_of(None, None) is None
    monkeypatch.setenv("JETSEL_ENDPOINT", "ipc:///variable.sock")
    assert endpoint_of(None, config) == "ipc:///run/own.sock"


def test_a_family_is_found_by_name_or_as_the_default_and_a_misspelt_one_is_corrected(tmp_path: Path) -> None:
    put_family(tmp_path / "cats", "cats", "s", "l")
    site = open_site(Config(models=Models(paths=[str(tmp_path / "cats")])))
    assert site.family(None).name == site.family("cats").name == "cats"
    with pytest.raises(UnknownFamilyError, match="did you mean cats"):
        site.family("cast")
