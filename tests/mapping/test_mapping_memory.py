"""The buffer pool and the CPU's memory models."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from mapping_helpers import FaultyHeap

from numba_offload.errors import DeviceMemoryError, TargetError
from numba_offload.mapping import HostHeap, UnifiedHostMemory
from numba_offload.mapping.pool import BufferPool, size_class
from numba_offload.mapping.settings import memory_limit


def test_size_classes_hold_and_waste_little():
    for n in [1, 255, 256, 257, 1000, 4096, 4097, 10**6, (32 << 20) - 1, (32 << 20) + 1, 10**9, 2**40 + 1]:
        size = size_class(n)
        assert size >= n
        assert size_class(size) == size
        assert n <= 256 or size <= n * 1.25 + 1


class TestPool:
    def test_reuse_trim_and_accounts(self):
        pool = BufferPool(HostHeap())
        a = pool.allocate(1000, "a")
        pool.free(a)
        assert pool.allocate(1010) == a
        b = pool.allocate(1000)
        assert b != a
        assert pool.bytes_in_use == pool.bytes_held == 2048
        pool.free(a)
        assert pool.trim() == 1024
        assert pool.bytes_held == 1024
        pool.free(b)
        pool.trim()
        assert pool.memory.live_buffers == 0

    def test_a_limit_evicts_what_is_cached_first(self):
        pool = BufferPool(HostHeap(), limit=4096)
        pool.free(pool.allocate(3000))
        a = pool.allocate(4000)
        assert pool.bytes_held == 4096
        with pytest.raises(DeviceMemoryError, match=r"argument 'p\.vel'.*limit is 4096"):
            pool.allocate(1, "p.vel")
        pool.free(a)
        pool.allocate(1)

    def test_failure_frees_the_cache_and_retries(self):
        heap = FaultyHeap()
        pool = BufferPool(heap)
        pool.free(pool.allocate(5000))
        heap.fail_allocations = {1}
        pool.allocate(100)
        assert heap.live_buffers == 1
        heap.fail_allocations = {3, 4}
        with pytest.raises(DeviceMemoryError, match="injected"):
            pool.allocate(100)
        pool.allocate(100)

    def test_the_environments_limit(self, monkeypatch):
        pool = BufferPool(HostHeap())
        for text, limit in (("4096", 4096), ("4k", 4096), (" 2M ", 2 << 20), ("1G", 1 << 30)):
            monkeypatch.setenv("NUMBA_OFFLOAD_MEMORY_LIMIT", text)
            assert memory_limit() == limit
        monkeypatch.setenv("NUMBA_OFFLOAD_MEMORY_LIMIT", "4K")
        held = pool.allocate(4096, "x", "kernel saxpy")
        with pytest.raises(
            DeviceMemoryError,
            match=r"argument 'y' \(preloaded\): 100 bytes needed, 4096 .* \(x: 4096 \(kernel saxpy\)\); "
            r"the limit is 4096 bytes \(NUMBA_OFFLOAD_MEMORY_LIMIT\)",
        ):
            pool.allocate(100, "y", "preloaded")
        assert BufferPool(HostHeap(), limit=10_000).allocate(5000)
        pool.free(held)
        monkeypatch.setenv("NUMBA_OFFLOAD_MEMORY_LIMIT", "")
        assert pool.allocate(10_000)

    @pytest.mark.parametrize("text", ["4 GB", "-1", "1.5G", "all", "0x10"])
    def test_a_limit_that_is_no_number_of_bytes_is_told_at_its_first_use(self, monkeypatch, text):
        pool = BufferPool(HostHeap())
        monkeypatch.setenv("NUMBA_OFFLOAD_MEMORY_LIMIT", text)
        with pytest.raises(TargetError, match="NUMBA_OFFLOAD_MEMORY_LIMIT=.*expected .* 500M or 4G"):
            pool.allocate(10)

    def test_what_the_device_has_is_told(self):
        class Informed(FaultyHeap):
            def memory_info(self):
                return 300, 8000

        heap = Informed()
        pool = BufferPool(heap)
        pool.allocate(1000, "x", "kernel saxpy")
        heap.fail_allocations = {1, 2}
        with pytest.raises(DeviceMemoryError, match=r"injected: out of memory; of the device's 8000 bytes 300 are free"):
            pool.allocate(5000, "y")

    def test_threads(self):
        pool = BufferPool(HostHeap())

        def work():
            for n in range(200):
                address = pool.allocate(100 + n)
                ctypes.memset(address, 1, 100 + n)
                pool.free(address)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pool.bytes_in_use == 0
        pool.trim()
        assert pool.memory.live_buffers == 0


class TestHostHeap:
    def test_memory_is_poisoned_and_aligned(self):
        heap = HostHeap()
        address = heap.allocate(100)
        assert address % 256 == 0
        assert ctypes.string_at(address, 100) == b"\xa5" * 100
        ctypes.memset(address, 0, 100)
        heap.recycle(address)
        assert ctypes.string_at(address, 100) == b"\xa5" * 100
        ctypes.memset(address, 0, 100)
        heap.free(address)
        assert ctypes.string_at(address, 100) == b"\xa5" * 100

    def test_copies_are_real(self):
        heap = HostHeap()
        address = heap.allocate(80)
        x, y = np.arange(10.0), np.zeros(10)
        heap.copy_to_device(address, x.ctypes.data, 80)
        x[:] = 0
        heap.copy_to_host(y.ctypes.data, address, 80)
        assert y.tolist() == list(range(10))
        heap.copy_to_host(x.ctypes.data, address + 40, 40)
        assert x[:5].tolist() == [5, 6, 7, 8, 9]

    def test_copies_on_the_device(self):
        heap = HostHeap()
        first, second = heap.allocate(80), heap.allocate(80)
        x, y = np.arange(10.0), np.zeros(10)
        heap.copy_to_device(first, x.ctypes.data, 80)
        heap.copy_within(second + 16, first, 64)
        heap.copy_to_host(y.ctypes.data, second, 80)
        assert y[2:].tolist() == list(range(8))
        for destination, source in ((second + 24, first), (second, first + 24), (second, 0x1000)):
            with pytest.raises(TargetError, match="not inside a live buffer"):
                heap.copy_within(destination, source, 64)
        with pytest.raises(TargetError, match="overlap"):
            heap.copy_within(first, first + 16, 64)

    def test_misuse_is_an_error(self):
        heap = HostHeap()
        address = heap.allocate(80)
        x = np.zeros(11)
        for bad in (address - 8, address + 8, 0x1000):
            with pytest.raises(TargetError, match="not inside a live buffer"):
                heap.copy_to_device(bad, x.ctypes.data, 80)
            with pytest.raises(TargetError, match="not inside a live buffer"):
                heap.copy_to_host(x.ctypes.data, bad, 80)
        heap.free(address)
        with pytest.raises(TargetError, match="no live buffer"):
            heap.free(address)

    @pytest.mark.parametrize("offset", [-1, 80])
    def test_writing_outside_a_buffer_shows(self, offset):
        heap = HostHeap()
        address = heap.allocate(80)
        ctypes.memset(address + offset, 0, 1)
        with pytest.raises(TargetError, match="outside its bounds"):
            heap.free(address)


def test_unified_memory_allocates_nothing():
    memory = UnifiedHostMemory()
    assert memory.unified
    with pytest.raises(TargetError):
        memory.allocate(8)
