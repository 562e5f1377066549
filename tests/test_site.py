"""Rows of an array and how they are cut: against numpy's own axes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit.errors import LnauditError
from lnaudit.site import ArrayRows, cut, normalize_axes


@pytest.mark.parametrize(
    ("axis", "ndim", "axes"),
    [(-1, 3, (2,)), (0, 1, (0,)), ((2, 0), 3, (0, 2)), ((-1, 1), 4, (1, 3)), ((0, 1, 2), 3, (0, 1, 2))],
)
def test_axes_are_sorted_and_not_negative(axis, ndim, axes):
    assert normalize_axes(axis, ndim) == axes


@pytest.mark.parametrize(("axis", "ndim"), [(3, 3), (-4, 3), ((0, 0), 2), ((1, -1), 2), ((), 2), (-1, 0)])
def test_axes_that_do_not_fit(axis, ndim):
    with pytest.raises(LnauditError, match=f"^x.npy: axis .*does not fit an array of {ndim} dimensions; "):
        normalize_axes(axis, ndim, "x.npy")


def test_cut_by_rows():
    x = np.arange(10.0).reshape(5, 2)
    pieces = [(first, block.tolist()) for first, block in cut(x, 1, 4)]
    assert pieces == [(0, [[0, 1], [2, 3]]), (2, [[4, 5], [6, 7]]), (4, [[8, 9]])]


def test_cut_never_splits_a_row():
    x = np.arange(6.0).reshape(2, 3)
    assert [(first, block.shape) for first, block in cut(x, 1, 1)] == [(0, (1, 3)), (1, (1, 3))]


def test_cut_of_one_row():
    assert [(first, block.shape) for first, block in cut(np.zeros((2, 3)), 0, 1)] == [(0, (1, 6))]


@settings(max_examples=150, deadline=None)
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data(), max_elements=st.integers(1, 200))
def test_blocks_and_take_agree_with_numpy(shape, data, max_elements):
    axes = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    rows = ArrayRows(x, axes)
    features = math.prod(shape[a] for a in axes)
    expected = np.moveaxis(x, sorted(axes), range(-len(axes), 0)).reshape(-1, features)
    assert (rows.rows, rows.features) == expected.shape
    firsts, blocks = zip(*rows.blocks(max_elements), strict=True)
    assert list(firsts) == [0, *itertools.accumulate(len(block) for block in blocks)][:-1]
    assert all(block.size <= max_elements or len(block) == 1 for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    indices = np.arange(0, len(expected), 2)
    np.testing.assert_array_equal(rows.take(indices), expected[indices])


def test_one_dimension_is_one_row():
    rows = ArrayRows(np.arange(3.0))
    assert (rows.rows, rows.features) == (1, 3)
    assert rows.notes == ("one-dimensional: read as one row",)
    assert ArrayRows(np.zeros((2, 3))).notes == ()


def test_the_same_array_along_another_axis():
    x = np.arange(6.0).reshape(2, 3)
    other = ArrayRows(x).along(0)
    assert (other.rows, other.features) == (3, 2)
    np.testing.assert_array_equal(other.take(np.arange(3)), x.T)


def test_blocks_of_a_transposed_array_are_views():
    x = np.zeros((3, 8), np.float32)
    assert all(np.shares_memory(block, x) for _, block in ArrayRows(x, 0).blocks(6))


def test_taken_rows_are_a_copy():
    x = np.zeros((3, 8), np.float32)
    assert not np.shares_memory(ArrayRows(x).take(np.array([0, 1])), x)
