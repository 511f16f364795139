"""jetson-stats is asked where it is wanted: what it says, what it cannot, and how the files fill the rest."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from jetsel.power.machine import BoardFacts, Fact, Known, Machine
from jetsel.power.machine.machine import JtopReport, JtopService
from tests.unit.power.machines import tx2
from tests.waiting import until

DOUBLES = Path(__file__).parents[2] / "doubles/jetson_stats"
WAIT_S = 20.0


@pytest.fixture
def jtop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in for jetson-stats, with a service that is well."""
    monkeypatch.syspath_prepend(str(DOUBLES))
    monkeypatch.delitem(sys.modules, "jtop", raising=False)
    import jtop

    yield jtop
    del sys.modules["jtop"]


def asked(sysfs: Path) -> BoardFacts:
    """What a machine says once its service has answered."""
    with closing(Machine(sysfs, jtop=True)) as machine:
        return machine.facts(wait_s=WAIT_S)


def test_what_the_service_says_fills_what_the_files_do_not(jtop: ModuleType, tmp_path: Path) -> None:
    found = asked(tmp_path / "sys")
    assert found.jtop == Fact("4.2.8")
    assert found.board == Fact("NVIDIA Jetson AGX Xavier")
    assert (found.l4t, found.jetpack) == (Fact("32.7.1"), Fact("4.6.1"))
    assert found.power_mode == Fact("0 MAXN")
    assert found.gpu_load == Known(0.985)


def test_a_board_without_power_modes_leaves_them_unknown(jtop: ModuleType, tmp_path: Path) -> None:
    jtop.service.nvpmodel = None
    jtop.service.hardware["Jetpack"] = ""  # a release that jetson-stats does not know
    jtop.service.gpu = {}
    found = asked(tmp_path / "sys")
    assert found.power_mode == Fact(None, "no nvpmodel status")
    assert found.gpu_load.value is None
    assert (found.jetpack.value, bool(found.jetpack.reason)) == (None, True)


def test_a_service_that_cannot_be_used_is_a_reason_and_the_files_stand(jtop: ModuleType, tmp_path: Path) -> None:
    jtop.service.fault = "inactive"
    found = asked(tx2(tmp_path))
    assert found.jtop.value is None
    assert "not active" in (found.jtop.reason or "")
    assert "\n" not in (found.jtop.reason or "")
    assert (found.power_mode, found.gpu_load) == (Fact("3 MAXP_CORE_ARM"), Known(0.95))


def test_without_jetson_stats_the_reason_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jtop", None)  # the import system's way to say that there is none
    assert "pip install 'jetsel[jetson]'" in str(asked(tmp_path / "sys").jtop.reason)


def test_it_is_not_imported_where_it_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jtop", None)
    monkeypatch.delitem(sys.modules, "jetsel.power.machine.machine", raising=False)
    assert Machine(tmp_path / "sys").facts(wait_s=WAIT_S).jtop == Fact(None, "not read: power.jtop is false")
    assert "jetsel.power.machine.machine" not in sys.modules


@pytest.mark.parametrize(("fault", "said"), [("broken", "Connection reset"), ("silent", "stopped answering")])
def test_a_service_that_goes_away_takes_its_facts_along_and_is_tried_again(
    jtop: ModuleType, fault: str, said: str
) -> None:
    service = JtopService(retry_s=0.01)
    assert isinstance(service.last(WAIT_S), JtopReport)
    jtop.service.fault = fault
    until(lambda: said in str(service.last()))
    jtop.service.fault = None
    until(lambda: isinstance(service.last(), JtopReport))
    service.close()
    until(lambda: jtop.service.clients == 0)


def test_an_answer_of_another_form_is_a_reason(jtop: ModuleType) -> None:
    jtop.service.gpu = {"gpu": {"load": 12}}  # as before 4.2
    service = JtopService()
    assert "KeyError" in str(service.last(WAIT_S))
    service.close()
