"""Mathematics does not depend on where arrays are: of the CPU's two memory models one is enough."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what would run the same machine code again."""

    def repeated(item: pytest.Item) -> bool:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        return item.path.parent.name == "accuracy" and parameters.get("target") == "cpu-discrete"

    left_out = [item for item in items if repeated(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not repeated(item)]
