"""Families: values against their definitions, one rounding, the same bytes by seed and by blocks, clear refusals."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lnaudit
from lnaudit.errors import LnauditError
from lnaudit.families import DTYPES, FAMILIES, MAX_ELEMENTS, blocks, generate, parse_family, site_of


def make(text):
    return generate(parse_family(text))


def gauss(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


DEFINITIONS = {
    "near-constant:offset=3,spread=0.5,rows=5,features=7,seed=2": 3 + 0.5 * gauss(2, 5, 7),
    "bump:offset=2,height=0.25,rows=2,features=3": [[2.25, 2, 2], [2, 2, 2]],
    "antisymmetric:t=0.01..100": [[-t, 0, t] for t in (0.01, 0.1, 1, 10, 100)],
    "antisymmetric:t=3": [[-3, 0, 3]],
    "antisymmetric:t=2..8,rows=3": [[-2, 0, 2], [-4, 0, 4], [-8, 0, 8]],
    "antisymmetric:t=1..5": [[-1, 0, 1], [-5, 0, 5]],
    "constant:value=-1.5,rows=2,features=3": [[-1.5] * 3] * 2,
    "zeros:rows=2,features=3": [[0] * 3] * 2,
    "normal:mean=-2,std=3,rows=4,features=6,seed=1": -2 + 3 * gauss(1, 4, 6),
    "checkerboard:m=4,rows=3,features=3": [[4, -4, 4], [-4, 4, -4], [4, -4, 4]],
    "ramp:start=10,step=0.5,rows=2,features=4": [[10, 10.5, 11, 11.5]] * 2,
}


@pytest.mark.parametrize("text", DEFINITIONS)
def test_values_are_those_of_the_definition(text):
    # 1e-15: powers of ten by exponent may be one rounding off
    np.testing.assert_allclose(make(f"{text},dtype=float64"), DEFINITIONS[text], rtol=1e-15)


def test_every_family_has_a_definition_here():
    assert {text.partition(":")[0] for text in DEFINITIONS} | {"outlier"} == set(FAMILIES)


def test_outliers_are_the_first_features_of_normal_rows():
    x = make("outlier:count=2,size=-7,rows=3,features=5,seed=4,dtype=float64")
    expected = gauss(4, 3, 5)
    expected[:, :2] = -7
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal((make("outlier") == 3000).sum(axis=1), 1)


def test_bump_is_the_tensor_of_the_textbook():
    expected = np.ones((4, 8), np.float32) * 5
    expected[0, 0] = 5.001
    x = make("bump")
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, expected)
    assert f"{x[0].var(ddof=1, dtype=np.float64):.3g}" == "1.25e-07"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("near-constant", "near-constant:offset=5,spread=1e-3,rows=64,features=768,seed=0"),
        ("bump", "bump:offset=5,height=1e-3,rows=4,features=8"),
        ("antisymmetric", "antisymmetric:t=1e-6..1e3,rows=10,features=3"),
        ("constant", "constant:value=5,rows=64,features=768"),
        ("zeros", "zeros:rows=64,features=768"),
        ("normal", "normal:mean=0,std=1,rows=64,features=768,seed=0"),
        ("outlier", "outlier:count=1,size=3000,rows=64,features=768,seed=0"),
        ("checkerboard", "checkerboard:m=256,rows=64,features=768"),
        ("ramp", "ramp:start=1000,step=1e-3,rows=64,features=768"),
        (" bump : rows = 2 , offset=0.001, ", "bump:offset=1e-3,height=1e-3,rows=2,features=8"),
        ("zeros:dtype=bf16,seed=7", "zeros:rows=64,features=768,dtype=bfloat16"),
        ("normal:mean=-1e300,std=0.1", "normal:mean=-1e300,std=0.1,rows=64,features=768,seed=0"),
    ],
)
def test_the_label_is_the_whole_text(text, label):
    spec = parse_family(text)
    assert spec.label == label
    assert parse_family(label) == spec
    assert hash(parse_family(label)) == hash(spec)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_rounded_once(name, dtype):
    exact, x = make(f"{name}:dtype=float64"), make(f"{name}:dtype={dtype}")
    assert x.dtype == (ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    np.testing.assert_array_equal(x.astype(np.float64), lnaudit.round_to(exact, dtype))


def test_rounding_to_bfloat16_does_not_pass_through_float32():
    # ml_dtypes rounds float64 twice here, to 1.0
    x = make(f"constant:value={1 + 2**-8 + 2**-40!r},rows=1,features=1,dtype=bfloat16")
    assert float(x[0, 0]) == 1.0078125


def test_overflow_gives_inf_without_a_warning():
    assert np.isposinf(make("constant:value=1e6,dtype=float16").astype(np.float64)).all()
    assert not np.isfinite(make("normal:std=1e308,dtype=float64")).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_seed_alone_decides(name):
    first = make(f"{name}:seed=3")
    np.random.default_rng().standard_normal(5)
    make("normal:seed=4")
    assert make(f"{name}:seed=3").tobytes() == first.tobytes()
    assert (make(f"{name}:seed=4").tobytes() != first.tobytes()) == FAMILIES[name].random


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rows_at_once", [1, 3, 10, 10**6])
def test_blocks_together_are_the_array(name, rows_at_once):
    spec = parse_family(f"{name}:rows=10,dtype=float16")
    parts = list(blocks(spec, rows_at_once))
    assert [len(part) for part in parts] == [min(rows_at_once, 10 - i) for i in range(0, 10, rows_at_once)]
    assert np.concatenate(parts).tobytes() == generate(spec).tobytes()


def test_an_array_of_many_blocks_is_filled():
    spec = parse_family("normal:rows=3000,features=200")
    assert len(list(blocks(spec))) > 2
    np.testing.assert_array_equal(generate(spec), gauss(0, 3000, 200).astype(np.float32))


def test_a_site_has_the_rows_and_the_label():
    spec = parse_family("near-constant:rows=3,features=5")
    site = site_of(spec, 1e-6, norm="rms")
    assert (site.name, site.source, site.norm, site.epsilon) == (spec.label, spec.label, "rms", 1e-6)
    assert (site.rows.rows, site.rows.features, site.rows.dtype) == (3, 5, np.float32)
    np.testing.assert_array_equal(site.rows.take(np.arange(3)), generate(spec))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("near-constnat", "near-constnat: unknown family 'near-constnat'; did you mean near-constant?"),
        ("", "unknown family ''; choose from near-constant, bump"),
        ("bump:hieght=1", "bump:hieght=1: unknown parameter 'hieght' of bump; did you mean height?"),
        ("bump:value=1", "unknown parameter 'value' of bump; choose from offset, height, rows, features, seed, dtype"),
        ("bump:rows", "rows: '' is not an integer from 1 to 10^18; as in rows=4"),
        ("bump:rows=0", "rows: '0' is not an integer"),
        ("bump:rows=-1", "rows: '-1' is not an integer"),
        ("bump:rows=2.0", "rows: '2.0' is not an integer"),
        ("bump:rows=٣", "rows: '٣' is not an integer"),
        ("bump:rows=1e3", "rows: '1e3' is not an integer"),
        ("bump:features=0", "features: '0' is not an integer"),
        ("bump:rows=2,rows=2", "rows is given twice"),
        ("bump:offset=nan", "offset: 'nan' is not a finite number; as in offset=5"),
        ("bump:offset=inf", "offset: 'inf' is not a finite number"),
        ("bump:height=x", "height: 'x' is not a finite number; as in height=1e-3"),
        ("normal:seed=-1", "seed: '-1' is not an integer from 0"),
        ("normal:dtype=int8", "dtype: 'int8' is not known; choose from float16, bfloat16, float32, float64"),
        ("normal:dtype=float8_e5m2", "dtype: 'float8_e5m2' is not known"),
        ("outlier:count=9,features=8", "count=9, but a row has 8 elements; give a count up to 8"),
        ("outlier:count=1.5", "count: '1.5' is not an integer from 0"),
        ("antisymmetric:features=4", "features=4, but its rows are (-t, 0, t)"),
        ("antisymmetric:rows=1", "one row cannot hold both ends of t=1e-6..1e3"),
        ("antisymmetric:t=0..1", "t: '0..1' is not a number > 0 or a range"),
        ("antisymmetric:t=2..1", "the smaller first; as in t=1e-6..1e3"),
        ("antisymmetric:t=1..inf", "t: '1..inf' is not"),
        ("antisymmetric:t=..", "t: '..' is not"),
        ("zeros:rows=100000,features=100000", "are 10,000,000,000 elements, limit 2,147,483,648; ask for fewer"),
        (f"zeros:rows={10**30}", "is not an integer from 1 to 10^18"),
        ("bump\n\x1b[31m", r"bump\n\x1b[31m: unknown family"),
        (f"normal:{'x' * 10_000}", "unknown parameter"),
    ],
)
def test_a_text_that_makes_no_sense_is_one_clear_line(text, said):
    with pytest.raises(LnauditError) as caught:
        parse_family(text)
    message = str(caught.value)
    assert said in message
    assert message.isprintable()
    assert len(message) < 300


def test_the_limit_itself_is_allowed():
    spec = parse_family(f"zeros:rows={MAX_ELEMENTS},features=1")
    assert math.prod(spec.shape) == MAX_ELEMENTS


WORDS = st.sampled_from(
    ["rows", "features", "seed", "dtype", *{key for family in FAMILIES.values() for key in family.defaults}]
)
VALUES = st.one_of(
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(DTYPES),
    st.tuples(st.floats(), st.floats()).map(lambda ends: f"{ends[0]}..{ends[1]}"),
)
ITEMS = st.lists(st.tuples(WORDS, VALUES).map("=".join), max_size=4).map(",".join)


@given(st.one_of(st.text(), st.tuples(st.sampled_from([*FAMILIES, "bumb"]), ITEMS).map(":".join)))
def test_any_text_either_parses_or_is_refused_in_one_line(text):
    try:
        spec = parse_family(text)
    except LnauditError as error:
        answer = str(error)
    else:
        answer = spec.label
        assert parse_family(spec.label) == spec
        assert math.prod(spec.shape) <= MAX_ELEMENTS
    assert answer.isprintable()


@given(
    offset=st.floats(allow_nan=False, allow_infinity=False),
    spread=st.floats(allow_nan=False, allow_infinity=False),
    rows=st.integers(1, 9),
    seed=st.integers(0, 10**17),
    dtype=st.sampled_from(DTYPES),
)
def test_the_label_gives_back_the_same_bytes(offset, spread, rows, seed, dtype):
    text = f"near-constant:offset={offset!r},spread={spread!r},rows={rows},features=4,seed={seed},dtype={dtype}"
    spec = parse_family(text)
    assert dict(spec.parameters) == {"offset": offset, "spread": spread}
    assert generate(parse_family(spec.label)).tobytes() == generate(spec).tobytes()
