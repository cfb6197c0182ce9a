"""What the package promises about its installation: metadata, versions, and imports that stay lazy."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]


def requirements(extra: str | None = None) -> dict[str, Requirement]:
    lines = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {found.name: found for found in map(Requirement, lines)}


def environment(platform: str) -> dict[str, str]:
    return {"sys_platform": platform}


def test_metadata_names_licence_readme_and_pythons() -> None:
    assert PROJECT["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
    assert (ROOT / PROJECT["readme"]).exists()
    pythons = SpecifierSet(PROJECT["requires-python"])
    assert [v for v in ("3.10", "3.11", "3.12", "3.13", "3.14") if v in pythons] == ["3.11", "3.12", "3.13"]


def test_numpy_stays_below_the_version_that_numba_cuda_cannot_use() -> None:
    numpy = requirements()["numpy"].specifier
    assert "2.0.0" in numpy and "2.4.6" in numpy
    assert "2.5.0" not in numpy and "1.26.4" not in numpy


def test_numba_is_held_to_one_minor_version() -> None:
    numba = requirements()["numba"].specifier
    assert "0.68.1" in numba
    assert "0.67.0" not in numba and "0.69.0" not in numba


def test_vendors_are_extras_and_not_asked_of_a_mac() -> None:
    assert not {"numba-cuda", "hip-python", "cuda-python"} & set(requirements())
    for extra, platforms in {
        "cuda12": ["linux", "win32"],
        "cuda13": ["linux", "win32"],
        "rocm": ["linux"],
    }.items():
        for requirement in requirements(extra).values():
            marker = requirement.marker
            assert isinstance(marker, Marker)
            wanted = [p for p in ("darwin", "linux", "win32") if marker.evaluate(environment(p))]
            assert wanted == platforms, extra


def test_nvidias_assembler_for_the_tests_is_not_asked_of_a_mac_either() -> None:
    nvidia = [found for name, found in requirements("test").items() if name.startswith("nvidia")]
    assert nvidia
    for requirement in nvidia:
        assert requirement.marker is not None
        assert not requirement.marker.evaluate(environment("darwin"))


@pytest.mark.parametrize("extra", ["plot", "examples", "test"])
def test_pictures_can_be_made_where_an_extra_says_so(extra: str) -> None:
    assert "matplotlib" in requirements(extra)


def test_both_packages_are_installed_with_their_types() -> None:
    packages = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["numba_offload", "partitioning"]
    for package in packages:
        assert (ROOT / package / "py.typed").exists()


def test_importing_loads_no_vendor_and_nothing_that_only_some_commands_need() -> None:
    code = (
        "import sys, numba_offload, numba_offload.cli; names = "
        "('numba.cuda', 'cuda', 'cuda.bindings', 'hip', 'matplotlib', 'numba_offload.demo');"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_a_launch_on_the_cpu_loads_no_vendor_either() -> None:
    code = (
        "import sys, numpy as np\n"
        "from numba_offload.demo.kernels import saxpy\n"
        "from numba_offload import Region, use_target\n"
        "with use_target('cpu'): saxpy(2.0, np.ones(9), Region(np.ones(9)))\n"
        "print([name for name in ('numba.cuda', 'cuda.bindings', 'hip') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_version_in_files_is_the_packages() -> None:
    from numba_offload.version import VERSION

    assert PROJECT["version"] == VERSION


def test_every_error_and_warning_is_public_and_in_the_readme() -> None:
    import numba_offload
    from numba_offload import errors

    found = {name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__}
    readme = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert found - set(numba_offload.__all__) == set()
    assert {name for name in found if f"`{name}" not in readme} == set()


def test_every_public_name_is_in_the_readme() -> None:
    import numba_offload

    readme = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert [name for name in numba_offload.__all__ if not re.search(rf"\b{name}\b", readme)] == []


def test_every_setting_is_in_the_readme() -> None:
    variables = {
        name
        for path in (ROOT / "numba_offload").rglob("*.py")
        for name in re.findall(r"NUMBA_OFFLOAD_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    readme = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert len(variables) >= 10
    assert {name for name in variables if f"`{name}`" not in readme} == set()


def test_public_names_exist() -> None:
    import numba_offload

    assert sorted(numba_offload.__all__) == list(numba_offload.__all__)
    for name in numba_offload.__all__:
        assert getattr(numba_offload, name) is not None
