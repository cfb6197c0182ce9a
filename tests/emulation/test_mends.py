"""The instructions that are executed in place of the emulator's, on registers made here."""

from __future__ import annotations

import numpy as np
import pytest

from emulation import narrow
from emulation.wave import EXEC, NULL, VCC, Wave


def wave(lanes):
    made = Wave(np.zeros(260, np.uint32), np.zeros((256, lanes), np.uint32), np.zeros((256, lanes), np.uint32))
    made.set_pair(EXEC, (1 << lanes) - 1)
    return made


def test_the_null_register_of_rdna_stays_zero():
    """Loads of scalars add it to their address."""
    rdna, cdna = wave(32), wave(64)
    for made in (rdna, cdna):
        everywhere = np.ones(made.lanes, bool)
        made.set_mask(NULL, everywhere, everywhere)
    assert rdna.scalars[NULL] == 0
    assert cdna.scalars[NULL] == 0xFFFFFFFF


@pytest.mark.parametrize(
    ("name", "selection", "result", "carry"),
    [
        ("V_SUB_CO_U32", 0, 0x34 - 0x80 + (1 << 32), True),  # byte 0, over its own operand
        ("V_SUB_CO_U32", 5, 0x12FE - 0x80, False),  # the upper word
        ("V_ADD_CO_U32", 8 | 1, 0xFFFFFF80 + 0x80 - (1 << 32), True),  # byte 1, with its sign
        ("V_SUBREV_CO_U32", 0, 0x80 - 0x34, False),
    ],
)
def test_additions_with_carry_on_parts_of_registers(name, selection, result, carry):
    made = wave(64)
    made.vectors[2], made.vectors[3] = 0x12FE8034, 0x80
    word = 0xF9 | 3 << 9 | 2 << 17 | 2 << 32 | 6 << 40 | selection << 48 | 6 << 56
    assert narrow.carries("VOP2_SDWA", name, word)
    assert narrow.with_carry(made, name, word)
    assert (made.vectors[2] == result).all()
    assert (made.mask(VCC) == carry).all()
