"""The mapping of one launch on separate memory, with kernels simulated on the device's addresses."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping_helpers import FaultyHeap, assert_nothing_in_use, discrete, kernel_view, launch
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from numba_offload.diagnostics.profile import profile
from numba_offload.errors import DeviceMemoryError, OffloadError, TargetError
from numba_offload.mapping import ArrayUse, DeviceArray, DeviceState, LaunchMapping, UnifiedHostMemory
from numba_offload.mapping.layout import address, raw_view


@pytest.fixture
def device():
    state = discrete()
    yield state
    assert_nothing_in_use(state)


def double(x, y):
    y[...] = 2 * x


def add_one(y):
    y[...] += 1


def nothing(*views):
    pass


class TestStridedViews:
    def test_elements_outside_a_written_view_are_unchanged(self, device):
        big = np.arange(12.0).reshape(3, 4)
        expected = big.copy()
        expected[:2, :2] += 1
        launch(device, add_one, ("v", big[:2, :2], "tofrom"))
        np.testing.assert_array_equal(big, expected)

    @pytest.mark.parametrize(
        "view", [np.s_[::2], np.s_[::-1], np.s_[:, 1:3], np.s_[..., None], np.s_[1:, ::-2], np.s_[2]]
    )
    @pytest.mark.parametrize("transposed", [False, True])
    def test_views_as_input_output_and_both(self, device, view, transposed):
        rng = np.random.default_rng(0)
        x, y, z = (rng.random((6, 6)) for _ in range(3))
        expected_y, expected_z = y.copy(), z.copy()
        views = [a.T[view] if transposed else a[view] for a in (x, y, z, expected_y, expected_z)]
        vx, vy, vz, ey, ez = views
        ey[...] = 2 * vx
        ez += 1
        launch(device, double, ("x", vx, "to"), ("y", vy, "from"))
        launch(device, add_one, ("z", vz, "tofrom"))
        np.testing.assert_array_equal(y, expected_y)
        np.testing.assert_array_equal(z, expected_z)

    def test_dense_arrays_keep_their_own_strides(self, device):
        base = np.arange(24.0).reshape(2, 3, 4)
        for array in (base, base.T, base[::-1], base.transpose(1, 0, 2)[:, ::-1], np.asfortranarray(base[0])):
            for map in ("to", "tofrom"):
                mapping = LaunchMapping(device, [ArrayUse("x", array, map)])
                assert mapping.views[0].strides == array.strides
                np.testing.assert_array_equal(kernel_view(mapping.views[0], array), array)
                mapping.finish(True)

    def test_other_arrays_are_packed_in_c_order(self, device):
        array = np.arange(24.0).reshape(4, 6)[:, ::2]
        mapping = LaunchMapping(device, [ArrayUse("x", array, "to")])
        assert mapping.views[0].strides == (24, 8)
        mapping.finish(True)

    def test_fortran_order(self, device):
        x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
        for y in (np.zeros((3, 4)), np.zeros((3, 4), order="F"), np.zeros((4, 3)).T[:, ::-1]):
            launch(device, double, ("x", x, "to"), ("y", y, "from"))
            np.testing.assert_array_equal(y, 2 * x)


class TestSmallShapes:
    @pytest.mark.parametrize("shape", [0, (0, 4), (4, 0)])
    @pytest.mark.parametrize("map", ["none", "to", "from", "tofrom"])
    def test_zero_size(self, device, shape, map):
        array = np.zeros(shape)
        with profile() as p:
            mapping = LaunchMapping(device, [ArrayUse("x", array, map)])
            assert mapping.views[0] == (0, array.strides)
            mapping.finish(True)
        assert p.events == []

    def test_zero_dimensional(self, device):
        z = np.array(0.0)
        launch(device, add_one, ("z", z, "tofrom"))
        assert z == 1.0
        assert z.shape == ()
        inner = np.zeros((3, 3))
        launch(device, add_one, ("z", inner[1, 1, ...], "tofrom"))
        assert inner.sum() == inner[1, 1] == 1

    def test_no_arguments(self, device):
        assert LaunchMapping(device, []).views == []


class TestReading:
    def test_read_only_arrays(self, device, tmp_path):
        locked = np.arange(4.0)
        locked.flags.writeable = False
        np.arange(4.0).tofile(tmp_path / "m")
        for x in (locked, np.memmap(tmp_path / "m", dtype="f8", mode="r")):
            y = np.zeros(4)
            launch(device, double, ("x", x, "to"), ("y", y, "from"))
            np.testing.assert_array_equal(y, 2 * locked)

    def test_a_broadcast_axis_is_mapped_once(self, device):
        x = np.broadcast_to(np.arange(3.0), (4, 3))
        y = np.zeros((4, 3))
        with profile() as p:
            mapping = LaunchMapping(device, [ArrayUse("x", x, "to")])
            assert mapping.views[0].strides == (0, 8)
            mapping.finish(True)
            launch(device, double, ("x", x, "to"), ("y", y, "from"))
        assert p.h2d_bytes == 2 * 24
        np.testing.assert_array_equal(y, 2 * x)
        strided = np.broadcast_to(np.arange(12.0).reshape(3, 4)[:, None, ::2], (3, 5, 2))
        y = np.zeros(strided.shape)
        launch(device, double, ("x", strided, "to"), ("y", y, "from"))
        np.testing.assert_array_equal(y, 2 * strided)

    def test_one_array_twice_is_one_copy(self, device):
        a = np.arange(10.0)
        for uses, moved in [
            ((a, a), 80),
            ((a[1:], a[:-1]), 80),
            ((a[1:], a[:-1], a, a[::2], a[::-1], a.view("u8")), 80),
            ((a[::2], a[::2]), 40),
            ((a[:4], a[6:]), 64),
            ((a[:5], a[::2]), 80),
        ]:
            with profile() as p:
                mapping = LaunchMapping(device, [ArrayUse(f"a{i}", use, "to") for i, use in enumerate(uses)])
                for view, use in zip(mapping.views, uses, strict=True):
                    np.testing.assert_array_equal(kernel_view(view, use), use)
                mapping.finish(True)
            assert p.h2d_bytes == moved
            assert p.d2h_count == 0

    def test_a_sliding_window_moves_its_range_only(self, device):
        windows = sliding_window_view(np.arange(100.0), 50)
        y = np.zeros(windows.shape)
        with profile() as p:
            launch(device, double, ("x", windows, "to"), ("y", y, "from"))
        assert p.h2d_bytes == 800
        np.testing.assert_array_equal(y, 2 * windows)

    def test_a_ranges_buffer_grows_after_a_strided_read_found_it_too_small(self, device):
        a = np.arange(20.0)
        uses = (a[:6], a[::6], a[4:12], a[10:])
        mapping = LaunchMapping(device, [ArrayUse(f"a{i}", use, "to") for i, use in enumerate(uses)])
        for view, use in zip(mapping.views, uses, strict=True):
            np.testing.assert_array_equal(kernel_view(view, use), use)
        mapping.finish(True)


class TestRecords:
    @pytest.mark.parametrize("align", [False, True])
    @pytest.mark.parametrize("map", ["from", "tofrom"])
    @pytest.mark.parametrize("view", [np.s_[:], np.s_[::2], np.s_[::-1]])
    def test_other_fields_and_padding_are_left_alone(self, device, align, map, view):
        dtype = np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")], align=align)
        raw = np.random.default_rng(0).integers(0, 255, 6 * dtype.itemsize, dtype=np.uint8)
        records = raw.view(dtype)
        expected = raw.copy().view(dtype)

        def write_fields(r):
            for field in dtype.names if map == "from" else ["b"]:
                r[field] = 3

        write_fields(expected[view])
        launch(device, write_fields, ("r", records[view], map))
        assert raw.tobytes() == expected.tobytes()

    def test_one_field_as_the_argument(self, device):
        records = np.zeros(4, dtype=[("a", "i8"), ("b", "f8")])
        records["a"] = 7
        launch(device, add_one, ("b", records["b"], "tofrom"))
        assert records["b"].tolist() == [1.0] * 4
        assert records["a"].tolist() == [7] * 4


class TestBits:
    def test_bool_stays_bool(self, device):
        y = np.zeros((4, 4), dtype=bool)
        launch(device, lambda v: np.logical_not(v, out=v), ("y", y[:, ::2], "tofrom"))
        assert set(y.view("u1").ravel().tolist()) == {0, 1}

    def test_the_real_part(self, device):
        z = np.arange(4) + 1j * np.arange(4)
        expected = z + 1
        launch(device, add_one, ("re", z.real, "tofrom"))
        np.testing.assert_array_equal(z, expected)

    @pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "?", "M8[ns]", "i2"])
    @pytest.mark.parametrize("view", [np.s_[:], np.s_[::2]])
    def test_every_bit_pattern_survives(self, device, dtype, view):
        raw = np.random.default_rng(3).integers(0, 256, 64, dtype=np.uint8)
        raw[:32] = 0xFF  # NaN payloads, NaT, true bytes that are not 1
        before = raw.copy()
        launch(device, nothing, ("x", raw.view(dtype)[view], "tofrom"))
        np.testing.assert_array_equal(raw, before)


class TestWhatMoves:
    def test_bytes_are_exact(self, device):
        x, y = np.zeros(64 << 17), np.zeros(512)
        with profile() as p:
            launch(device, nothing, ("x", x, "to"), ("y", y, "from"))
        assert (p.h2d_bytes, p.h2d_count) == (64 << 20, 1)
        assert (p.d2h_bytes, p.d2h_count) == (4 << 10, 1)
        assert [(e.kind, e.name, e.kernel, e.target) for e in p.events] == [
            ("h2d", "x", "simulated", "cpu"),
            ("d2h", "y", "simulated", "cpu"),
        ]

    def test_none_moves_nothing(self, device):
        x = np.ones(4)
        with profile() as p:
            mapping = LaunchMapping(device, [ArrayUse("x", x, "none")])
            assert mapping.views[0] == (0, (8,))
            mapping.finish(True)
        assert p.events == []
        assert device.pool.bytes_held == 0

    def test_from_is_not_uploaded_and_reused_buffers_hold_no_data(self, device):
        x = np.ones(4)
        launch(device, nothing, ("x", x, "to"))
        y = np.zeros(4)
        launch(device, nothing, ("y", y, "from"))  # a wrong "from": the poison shows
        assert y.tobytes() == b"\xa5" * 32

    def test_partly_written_output(self, device):
        out = np.full(10, 7.0)

        def even(v):
            v[::2] = 0

        launch(device, even, ("out", out, "tofrom"))
        assert out.tolist() == [0, 7] * 5

    def test_the_result_is_as_of_the_call(self, device):
        x, y = np.arange(4.0), np.zeros(4)
        mapping = LaunchMapping(device, [ArrayUse("x", x, "to"), ArrayUse("y", y, "from")])
        expected = 2 * x
        double(*(kernel_view(v, a) for v, a in zip(mapping.views, (x, y), strict=True)))
        x[:] = 0
        keep = y
        del x, y
        gc.collect()
        mapping.finish(True)
        np.testing.assert_array_equal(keep, expected)

    @pytest.mark.parametrize("map", ["from", "tofrom"])
    @pytest.mark.parametrize("view", [np.s_[:], np.s_[::2]])
    def test_nothing_is_written_after_an_error(self, device, map, view):
        y = np.arange(10.0)
        launch(device, add_one, ("y", y[view], map), ok=False)
        np.testing.assert_array_equal(y, np.arange(10.0))

    def test_finishing_twice_does_nothing(self, device):
        y = np.zeros(3)
        mapping = LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        mapping.finish(False)
        mapping.finish(True)
        assert y.tolist() == [0, 0, 0]

    def test_as_a_context_manager(self, device):
        y = np.zeros(3)
        with LaunchMapping(device, [ArrayUse("y", y, "tofrom")]) as mapping:
            add_one(kernel_view(mapping.views[0], y))
        assert y.tolist() == [1, 1, 1]
        with pytest.raises(KeyError), LaunchMapping(device, [ArrayUse("y", y, "tofrom")]) as mapping:
            add_one(kernel_view(mapping.views[0], y))
            raise KeyError
        assert y.tolist() == [1, 1, 1]

    def test_a_dropped_launch_is_released_by_the_next(self, device):
        y = np.zeros(3)
        LaunchMapping(device, [ArrayUse("y", y, "tofrom")])
        gc.collect()
        launch(device, add_one, ("y", y, "tofrom"))
        assert y.tolist() == [1, 1, 1]


class TestInPlace:
    def test_unified_memory_moves_nothing(self):
        device = DeviceState(UnifiedHostMemory())
        big = np.arange(24.0).reshape(4, 6)
        arrays = [big, big[::-1, ::2], np.broadcast_to(big[0], (3, 6)), np.zeros(0)]
        with profile() as p:
            mapping = LaunchMapping(device, [ArrayUse("x", a, "tofrom") for a in arrays])
            for view, a in zip(mapping.views, arrays, strict=True):
                assert view == (a.__array_interface__["data"][0], a.strides)
            mapping.finish(True)
        assert p.events == []

    @pytest.mark.parametrize("unified", [False, True])
    def test_device_arrays_stay_where_they_are(self, unified):
        device = DeviceState(UnifiedHostMemory()) if unified else discrete()
        array = DeviceArray(0x5000, (3,), (-16,), np.dtype("f8"), False, None)
        with profile() as p:
            mapping = LaunchMapping(device, [ArrayUse("x", array, "tofrom")])
            assert mapping.views == [(0x5000, (-16,))]
            mapping.finish(True)
        assert p.events == []
        assert device.pool.bytes_held == 0


class TestFaults:
    def arguments(self):
        rng = np.random.default_rng(0)
        big = rng.random((8, 8))
        return [big, rng.random(50), rng.random(200), rng.random((4, 4)), rng.random(30)]

    def uses(self, arguments):
        big, a, b, c, d = arguments
        return [
            ("big", big[:, ::2], "tofrom"),
            ("a", a, "tofrom"),
            ("b", b, "tofrom"),
            ("c", c.T, "from"),
            ("d", d[::2], "to"),
            ("d1", d[10:], "to"),
        ]

    def kernel(self, big, a, b, c, d, d1):
        for y in (big, a, b):
            y += 1
        c[...] = 5

    def test_every_copy_and_allocation_may_fail(self):
        heap = FaultyHeap()
        device = DeviceState(heap, name="cpu")
        arguments = self.arguments()
        launch(device, self.kernel, *self.uses(arguments))
        copies, allocations = heap.copies, heap.allocations
        assert copies == 9
        assert allocations == 6
        for kind in ("copies", "allocations"):
            for fault in range(copies if kind == "copies" else allocations):
                device.pool.trim()
                arguments = self.arguments()
                before = [a.copy() for a in arguments]
                heap.reset()
                faults = {fault} if kind == "copies" else {fault, fault + 1}  # an allocation is tried twice
                setattr(heap, f"fail_{kind}", faults)
                with pytest.raises(
                    TargetError if kind == "copies" else DeviceMemoryError, match="injected"
                ) as caught:
                    launch(device, self.kernel, *self.uses(arguments))
                assert isinstance(caught.value, OffloadError)
                assert "argument '" in str(caught.value)
                setattr(heap, f"fail_{kind}", set())
                for a, b in zip(arguments, before, strict=True):
                    np.testing.assert_array_equal(a, b)
                assert device.pool.bytes_in_use == 0
                launch(device, self.kernel, *self.uses(arguments))
                np.testing.assert_array_equal(arguments[1], before[1] + 1)
                np.testing.assert_array_equal(arguments[3], np.full((4, 4), 5))
        assert_nothing_in_use(device)

    def test_one_failed_allocation_is_retried_without_the_cache(self):
        heap = FaultyHeap()
        device = DeviceState(heap)
        launch(device, nothing, ("x", np.ones(10000), "to"))
        assert device.pool.bytes_held > 0
        heap.fail_allocations = {heap.allocations}
        y = np.zeros(3)
        launch(device, add_one, ("y", y, "tofrom"))
        assert y.tolist() == [1, 1, 1]
        assert device.pool.bytes_held == 256

    def test_the_limit_says_what_is_mapped(self):
        device = discrete(limit=2000)
        with pytest.raises(
            DeviceMemoryError, match=r"'y'.*8000 bytes needed.*x: 800.*limit is 2000"
        ) as caught:
            launch(device, nothing, ("x", np.zeros(100), "tofrom"), ("y", np.zeros(1000), "tofrom"))
        assert isinstance(caught.value, MemoryError)
        assert_nothing_in_use(device)


@st.composite
def axes_view(draw, base):
    """A random view of a 3-D array: slices with either sign of step, permuted axes, dropped and new axes."""
    index = []
    for size in base.shape:
        if draw(st.integers(0, 5)) == 0:
            index.append(draw(st.integers(0, size - 1)))
        else:
            step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
            bounds = st.one_of(st.none(), st.integers(-size, size))
            index.append(slice(draw(bounds), draw(bounds), step))
    view = base[(*index, Ellipsis)]
    view = view.transpose(draw(st.permutations(range(view.ndim))))
    return view[..., None] if draw(st.booleans()) else view


def bits(array):
    """All bytes of all elements; NumPy itself leaves out the padding when it copies records."""
    return raw_view(address(array), array.shape, array.strides, array.dtype.itemsize).tobytes()


DTYPES = [
    "u1",
    "i4",
    "f8",
    "c16",
    np.dtype([("a", "i1"), ("b", "f4")]),
    np.dtype([("a", "i1"), ("b", "f4")], align=True),
]


@settings(max_examples=250, deadline=None)
@given(st.data(), st.sampled_from(DTYPES), st.sampled_from(["to", "from", "tofrom"]), st.booleans())
def test_round_trips_are_exact_and_nothing_else_is_touched(data, dtype, map, ok):
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    raw = rng.integers(0, 256, 4 * 5 * 6 * dtype.itemsize, dtype=np.uint8)
    view = data.draw(axes_view(raw.view(dtype).reshape(4, 5, 6)))
    if map == "to" and data.draw(st.booleans()):
        view = np.broadcast_to(view, (3, *view.shape))
    device = discrete()
    expected = raw.copy()
    if view.size:
        offset = view.__array_interface__["data"][0] - raw.__array_interface__["data"][0]
        item = expected[offset : offset + dtype.itemsize].view(dtype)
        mirror = as_strided(item, view.shape, view.strides)

    def flip(y):
        fields = [y[name] for name in dtype.names] if dtype.names else [y]
        for field in fields:
            field[...] = 1 if map == "from" else field + 1

    mapping = LaunchMapping(device, [ArrayUse("y", view, map)])
    inside = kernel_view(mapping.views[0], view)
    if map != "from":
        assert bits(inside) == bits(view)
    if map != "to":
        with np.errstate(all="ignore"):
            flip(inside)
            if ok and view.size:
                flip(mirror)
    mapping.finish(ok)
    assert raw.tobytes() == expected.tobytes()
    assert_nothing_in_use(device)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_many_reads_of_one_array_see_the_right_elements(data):
    base = np.arange(120.0).reshape(4, 5, 6)
    views = [data.draw(axes_view(base)) for _ in range(data.draw(st.integers(1, 6)))]
    device = discrete()
    with profile() as p:
        mapping = LaunchMapping(device, [ArrayUse(f"a{i}", view, "to") for i, view in enumerate(views)])
        for place, view in zip(mapping.views, views, strict=True):
            np.testing.assert_array_equal(kernel_view(place, view), view)
        mapping.finish(True)
    assert p.h2d_bytes <= sum(view.nbytes for view in views)
    assert_nothing_in_use(device)
