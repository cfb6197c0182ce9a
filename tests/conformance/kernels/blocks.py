"""Kernels of the conformance suite: own blocks."""

from __future__ import annotations

from numba_offload import offload_kernel


@offload_kernel
def scan_block(y):
    block = y.local
    for k in range(1, block.shape[0]):
        block[k] += block[k - 1]


@offload_kernel
def block_origin(y):
    block = y.local
    for k in range(len(block)):
        block[k] = 1000 * y.origin + k


@offload_kernel
def block_origin_2d(y):
    block = y.local
    r, c = y.origin
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = 1000 * (10 * r + c) + 10 * i + j


@offload_kernel
def block_origin_3d(y):
    block = y.local
    p, r, c = y.origin
    for h in range(block.shape[0]):
        for i in range(block.shape[1]):
            for j in range(block.shape[2]):
                block[h, i, j] = 10000 * (100 * p + 10 * r + c) + 100 * h + 10 * i + j


@offload_kernel
def block_from(x, y):
    mine = y.local
    at = y.origin
    for k in range(mine.shape[0]):
        mine[k] = x[at + mine.shape[0] - 1 - k]


@offload_kernel
def block_slices(y):
    block = y.local
    block[:] = 5
    block[::2] = 1
    block[-1] = 9


@offload_kernel
def block_past_its_end(y):
    block = y.local
    block[block.shape[0]] = 1
