"""Manifests and the search for sites: what is a site, what it is called, and one broken file never stops the rest."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit.errors import LnauditError
from lnaudit.readers import discover
from lnaudit.readers.discover import find_sites
from lnaudit.readers.manifest import ManifestSite, read_manifest
from lnaudit.readers.paths import expand, unique_names
from lnaudit.readers.sites import SiteOptions
from lnaudit.site import NotAudited, Site


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(name, shape=(4, 3), fill=1.0, dtype=np.float32):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    np.save(name, np.full(shape, fill, dtype))


def write(folder, *sites, **more):
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "manifest.json").write_text(json.dumps({"schema_version": 1, "sites": list(sites), **more}))


def entry(name="a", file="a.npy", **more):
    return {"name": name, "file": file, **more}


def look(*paths, **options):
    """Return what the paths give: names of sites, (source, reason) of the rest."""
    found = find_sites(paths, SiteOptions(**options)).open()
    return [item.name if isinstance(item, Site) else (item.source, item.reason) for item in found]


def sites(*paths, **options):
    items = list(find_sites(paths, SiteOptions(**options)).open())
    assert all(isinstance(item, Site) for item in items), items
    return items


def sources(*paths, **options):
    return [item.source for item in find_sites(paths, SiteOptions(**options)).open()]


# the manifest


def test_entry_with_everything(tmp_path):
    full = entry(norm="group", axis=[1, -1], epsilon=0, weight="w.npy", bias="./b.npy", kernel="fused", groups=2)
    write(tmp_path, full, entry("b", "sub/b.npy"), source={"model": "m"})
    manifest = read_manifest(tmp_path / "manifest.json")
    assert manifest.sites == (
        ManifestSite(
            name="a",
            file="a.npy",
            norm="group",
            axis=(1, -1),
            epsilon=0.0,
            weight="w.npy",
            bias="./b.npy",
            kernel="fused",
            groups=2,
        ),
        ManifestSite(name="b", file="sub/b.npy"),
    )
    assert manifest.files == {"a.npy", "w.npy", "b.npy", "sub/b.npy"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON (line 1: Expecting value); write it again"),
        ('{"sites": [', "is not JSON (line 1: Expecting value); write it again"),
        ("[" * 100_000, "is not JSON; write it again"),
        ("9" * 5000, "is not JSON; write it again"),
        ("[]", "is no manifest of lnaudit: it has no `sites`; name the files themselves"),
        ('{"tests": []}', "is no manifest of lnaudit: it has no `sites`; name the files themselves"),
        ('{"sites": {}}', "has `sites` {}, not a list"),
        ('{"sites": []}', "lists no sites; nothing to audit"),
        ('{"sites": [1], "schema_version": 2}', "has schema_version 2; version 1 is read"),
        ('{"sites": [1], "schema_version": "1"}', 'has schema_version "1"; version 1 is read'),
    ],
    ids=lambda text: text[:30],
)
def test_manifest_that_is_none(tmp_path, text, reason):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(LnauditError) as caught:
        read_manifest(tmp_path / "manifest.json", "d/manifest.json")
    assert str(caught.value) == f"d/manifest.json: {reason}"


def test_manifest_in_another_encoding(tmp_path):
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(LnauditError, match=r"^is not JSON; write it again$"):
        read_manifest(tmp_path / "manifest.json")


def test_manifest_with_byte_order_mark(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"sites": [entry()]}), encoding="utf-8-sig")
    assert read_manifest(tmp_path / "manifest.json").sites == (ManifestSite(name="a", file="a.npy"),)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (3, "sites[0] is not an object"),
        ({"file": "a.npy"}, "sites[0] has no 'name'; each site needs a name and a file"),
        ({"name": "a"}, "sites[0] (a) has no 'file'; each site needs a name and a file"),
        (entry(name=3), "sites[0] has name 3, not a text"),
        (entry(name=""), 'sites[0] () has name "", not a text'),
        (entry(file=["a"]), 'sites[0] (a) has file ["a"], not a text'),
        (entry(name="a\nb", file=1), "sites[0] (a\\nb) has file 1, not a text"),
        (entry(norm="batch"), 'sites[0] (a) has norm "batch"; choose from layer, rms'),
        (entry(axis=1.0), "sites[0] (a) has axis 1.0, not an integer or a list of them"),
        (entry(axis=True), "sites[0] (a) has axis true, not an integer or a list of them"),
        (entry(axis=[]), "sites[0] (a) has axis [], not an integer or a list of them"),
        (entry(axis=[0, "1"]), 'sites[0] (a) has axis [0, "1"], not an integer or a list of them'),
        (entry(epsilon="1e-5"), 'sites[0] (a) has epsilon "1e-5", not a finite number >= 0'),
        (entry(epsilon=-1e-5), "sites[0] (a) has epsilon -1e-05, not a finite number >= 0"),
        (entry(epsilon=math.nan), "sites[0] (a) has epsilon NaN, not a finite number >= 0"),
        (entry(epsilon=math.inf), "sites[0] (a) has epsilon Infinity, not a finite number >= 0"),
        (entry(epsilon=10**309), f"sites[0] (a) has epsilon 1{'0' * 56}..., not a finite number >= 0"),
        (entry(epsilon=True), "sites[0] (a) has epsilon true, not a finite number >= 0"),
        (entry(eps=1e-12), "sites[0] (a) has the key 'eps'; it is called 'epsilon' here"),
        (entry(gamma="w.npy"), "sites[0] (a) has the key 'gamma'; it is called 'weight' here"),
        (entry(weight=1), "sites[0] (a) has weight 1, not a text"),
        (entry(bias=False), "sites[0] (a) has bias false, not a text"),
        (entry(kernel=[]), "sites[0] (a) has kernel [], not a text"),
        (entry(groups=0), "sites[0] (a) has groups 0, not a positive integer"),
        (
            entry(file="/etc/x.npy"),
            'sites[0] (a) has file "/etc/x.npy", outside its folder; name files below the manifest',
        ),
        (entry(file="../x.npy"), 'sites[0] (a) has file "../x.npy", outside its folder; name files below the manifest'),
        (
            entry(file="s/../../x.npy"),
            'sites[0] (a) has file "s/../../x.npy", outside its folder; name files below the manifest',
        ),
        (
            entry(file="..\\x.npy"),
            'sites[0] (a) has file "..\\\\x.npy", outside its folder; name files below the manifest',
        ),
        (
            entry(file="C:\\x.npy"),
            'sites[0] (a) has file "C:\\\\x.npy", outside its folder; name files below the manifest',
        ),
        (
            entry(file="a\0.npy"),
            'sites[0] (a) has file "a\\u0000.npy", outside its folder; name files below the manifest',
        ),
        (
            entry(weight="../w.npy"),
            'sites[0] (a) has weight "../w.npy", outside its folder; name files below the manifest',
        ),
    ],
    ids=lambda case: str(case)[:40],
)
def test_broken_entry_does_not_stop_the_next(tmp_path, wrong, reason):
    write(tmp_path, wrong, entry("b", "b.npy"))
    first, second = read_manifest(tmp_path / "manifest.json", "d/manifest.json").sites
    assert str(first) == f"d/manifest.json: {reason}"
    assert second == ManifestSite(name="b", file="b.npy")


def test_name_given_twice(tmp_path):
    write(tmp_path, entry(), entry(file="b.npy"))
    first, second = read_manifest(tmp_path / "manifest.json").sites
    assert isinstance(first, ManifestSite)
    assert str(second) == "sites[1] (a) has a name that an earlier one has; give each site its own"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["name", "file", "norm", "axis", "epsilon", "weight", "bias", "kernel", "groups"])


@settings(max_examples=150, deadline=None)
@given(document=JSON | st.fixed_dictionaries({"sites": st.lists(st.dictionaries(KEYS, JSON), max_size=3)}))
def test_any_document_gives_entries_or_one_line(tmp_path_factory, document):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(document))
    try:
        found = read_manifest(path).sites
    except LnauditError as error:
        found = (error,)
    assert all(isinstance(item, ManifestSite) or str(item).isprintable() for item in found)


# files


def test_file_as_it_is_given(here):
    save("d/x.npy")
    (site,) = sites("./d/x.npy")
    assert (site.name, site.source, site.norm, site.epsilon_source) == ("x", "./d/x.npy", "layer", "default")
    assert (site.epsilon, site.weight, site.bias, site.kernel, site.overridden) == (1e-5, None, None, None, ())
    assert site.rows.shape == (4, 3)


def test_same_file_twice_is_audited_once(here):
    save("x.npy")
    assert look("x.npy", "./x.npy", "x.npy", ".", str(here / "x.npy")) == ["x"]


def test_broken_files_do_not_stop_the_rest(here):
    save("a.npy")
    Path("b.npy").write_bytes(b"")
    save("c.npz.npy")
    Path("d.txt").write_text("")
    Path("e").write_text("")
    assert look("a.npy", "b.npy", "gone.npy", "gone.txt", "d.txt", "e", "c.npz.npy") == [
        "a",
        ("b.npy", "is empty (0 bytes); write the dump again"),
        ("gone.npy", "does not exist"),
        ("gone.txt", "does not exist"),
        ("d.txt", ".txt files cannot be read; what can: .npy"),
        ("e", "files without a suffix cannot be read; what can: .npy"),
        "c.npz",
    ]


def test_file_beside_a_manifest_is_read_without_it(here):
    save("d/a.npy")
    write("d", entry("model.norm", epsilon=1e-12))
    (site,) = sites("d/a.npy")
    assert (site.name, site.epsilon) == ("a", 1e-5)


# folders


def test_folder_without_manifest(here):
    for name in ("d/b.npy", "d/a/z.npy", "d/a.npy", "d/x.gamma.npy", "d/.hidden.npy", "d/.git/y.npy", "d/up/X.NPY"):
        save(name)
        if name.endswith(".NPY"):
            os.replace(f"{name}.npy", name)
    Path("d/readme.txt").write_text("")
    assert sources("d") == ["a/z.npy", "a.npy", "b.npy", "up/X.NPY", "x.gamma.npy"]
    assert sources("d/") == sources("d")
    os.chdir("d")
    assert sources(".") == ["a/z.npy", "a.npy", "b.npy", "up/X.NPY", "x.gamma.npy"]


def test_broken_file_of_a_folder_is_named_with_the_folder(here):
    save("dumps/a.npy")
    Path("dumps/sub").mkdir()
    Path("dumps/sub/broken.npy").write_bytes(b"\x93NUMPY")
    expected = ["a", ("dumps/sub/broken.npy", "ends within its header (6 bytes); write the dump again")]
    assert look("dumps/") == expected
    assert look("./dumps") == expected


@pytest.mark.parametrize("content", [[], ["readme.txt"], [".x.npy"], ["sub/readme.txt"]])
def test_folder_without_anything(here, content):
    Path("d/sub").mkdir(parents=True)
    for name in content:
        Path("d", name).write_text("")
    assert look("d/") == [("d", "no .npy file below; nothing to audit")]


def test_links_are_not_followed_in_circles(here):
    save("d/a.npy")
    save("other/b.npy")
    Path("d/loop").symlink_to("..", target_is_directory=True)
    Path("d/other").symlink_to("../other", target_is_directory=True)
    Path("d/self.npy").symlink_to("self.npy")
    assert look("d") == ["a", ("d/self.npy", "cannot be read (too many levels of symbolic links)")]
    assert find_sites(["d"], SiteOptions()).notes == ("links to folders are not followed: d/loop, d/other",)
    assert look("d/other") == ["b"]
    assert expand("**/*.npy") == ["d/a.npy", "d/self.npy", "other/b.npy"]


def test_folder_that_cannot_be_listed(here, monkeypatch):
    save("d/a.npy")
    save("d/s/b.npy")
    listed = discover.list_folder

    def refuse(path):
        if path == "d/s":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr("lnaudit.readers.discover.list_folder", refuse)
    assert look("d") == ["a", ("d/s", "cannot be read (permission denied)")]


def test_hostile_names(here):
    name = "a\n\x1b[31m[bold]<b>.npy"
    save(name)
    Path("\udcff.npy").write_bytes(b"")
    assert look(".") == [name[:-4], ("\udcff.npy", "is empty (0 bytes); write the dump again")]
    assert look("x\0.npy") == [("x\0.npy", "is not a file name")]


def test_name_that_no_file_can_have(here):
    save("d/a.npy")
    write("d", entry("bad", "\ud800.npy"), entry())
    assert look("d") == [("d/\ud800.npy", "is not a file name"), "a"]


# folders with a manifest


def test_manifest_governs_its_folder(here):
    save("d/a.npy")
    save("d/w.npy", (3,), 2.0)
    save("d/b.npy", (3,), 0.5)
    save("d/extra.npy")
    save("d/sub/more.npy")
    full = entry("model.norm", norm="rms", epsilon=1e-6, weight="w.npy", bias="b.npy", kernel="fused", axis=-1)
    write("d", full, entry("model.again", epsilon=0, axis=[0, 1]))
    first, again = sites("d")
    assert (first.name, first.source, first.norm, first.epsilon) == ("model.norm", "a.npy", "rms", 1e-6)
    assert (first.epsilon_source, first.kernel, first.overridden) == ("manifest", "fused", ())
    assert first.weight is not None
    assert first.bias is not None
    assert (first.weight.tolist(), first.bias.tolist()) == ([2.0] * 3, [0.5] * 3)
    assert (again.epsilon, again.epsilon_source, again.rows.axes) == (0.0, "manifest", (0, 1))
    assert find_sites(["d"], SiteOptions()).notes == (
        "d/manifest.json: 2 .npy files not listed by its manifest left out: extra.npy, sub/more.npy",
    )


def test_many_files_left_out_are_one_short_note(here):
    save("d/a.npy")
    write("d", entry())
    for i in range(8):
        save(f"d/more{i}.npy")
    (note,) = find_sites(["d"], SiteOptions()).notes
    assert note.endswith("left out: more0.npy, more1.npy, more2.npy, more3.npy, more4.npy and 3 more")


def test_each_manifest_governs_down_to_the_next(here):
    save("root/free.npy")
    for folder in ("root/one", "root/two", "root/two/inner"):
        save(f"{folder}/a.npy")
        write(folder, entry("norm"))
    items = sites("root")
    assert [item.source for item in items] == ["free.npy", "one/a.npy", "two/a.npy", "two/inner/a.npy"]
    assert [item.name for item in items] == ["free", "one/norm", "two/norm", "inner/norm"]
    assert find_sites(["root"], SiteOptions()).notes == ()


def test_broken_site_of_a_manifest_does_not_stop_the_others(here):
    save("d/a.npy")
    save("d/w.npy", (4,))
    write(
        "d",
        entry("gone", "gone.npy"),
        entry("wide", weight="w.npy"),
        entry("lost", bias="lost.npy"),
        entry("groups", norm="group", groups=2),
        entry("axis", axis=2),
        entry("typo", eps=1e-12),
        entry("text", "notes.txt"),
        entry("good"),
    )
    Path("d/notes.txt").write_text("")
    assert look("d") == [
        ("d/gone.npy", "does not exist"),
        ("d/a.npy", "weight d/w.npy: shape (4,) does not fit the reduced axes, shape (3,)"),
        ("d/a.npy", "bias d/lost.npy: does not exist"),
        ("d/a.npy", "norm 'group' is not supported yet; only layer and rms are"),
        ("d/a.npy", "axis 2 does not fit an array of 2 dimensions; name each once, from -2 to 1"),
        ("d/manifest.json", "sites[5] (typo) has the key 'eps'; it is called 'epsilon' here"),
        ("d/notes.txt", ".txt files cannot be read; what can: .npy"),
        "good",
    ]


@pytest.mark.parametrize("text", ['{"tests": []}', "", '{"sites": []}'])
def test_broken_manifest_is_one_line_and_the_rest_goes_on(here, text):
    save("d/a.npy")
    save("d/sub/b.npy")
    write("d/sub", entry("b", "b.npy"))
    Path("d/manifest.json").write_text(text)
    (failed, name) = look("d")
    assert failed[0] == "d/manifest.json"
    assert name == "b"
    assert find_sites(["d"], SiteOptions()).notes == ()


def test_options_override_a_manifest_and_say_so(here):
    save("d/a.npy")
    save("d/w.npy", (3,), 2.0)
    save("v.npy", (3,), 3.0)
    write("d", entry("full", norm="rms", axis=-1, epsilon=1e-6, weight="w.npy"), entry("bare"))
    full, bare = sites("d", norm="layer", epsilon=1e-3, weight=Path("v.npy"))
    assert (full.norm, full.epsilon, full.epsilon_source) == ("layer", 1e-3, "option")
    assert full.weight is not None
    assert full.weight.tolist() == [3.0] * 3
    assert full.overridden == ("epsilon", "norm", "weight")
    assert (bare.epsilon_source, bare.overridden) == ("option", ())
    same, _ = sites("d", epsilon=1e-6)
    assert (same.epsilon_source, same.overridden) == ("option", ())
    save("d/long.npy", (4,))
    turned, _ = sites("d", axis=0, weight=Path("d/long.npy"))
    assert (turned.rows.axes, turned.overridden) == ((0,), ("axis", "weight"))


# options


def test_weight_and_bias_for_every_site(here):
    save("a.npy", (4, 3))
    save("b.npy", (4, 5))
    save("w.npy", (3,), 2.0)
    reason = "bias w.npy: shape (3,) does not fit the reduced axes, shape (5,)"
    assert look("a.npy", "b.npy", bias=Path("w.npy")) == ["a", ("b.npy", reason)]


def test_parameter_that_is_not_there_stops_the_run(here):
    save("a.npy")
    with pytest.raises(LnauditError, match=r"^--weight w.npy: does not exist$"):
        find_sites(["a.npy"], SiteOptions(weight=Path("w.npy")))


def test_dtype_reaches_the_reader(here):
    save("a.npy", dtype=np.uint16)
    assert look("a.npy")[0][1] == "uint16 elements; if they are the bits of bfloat16: --dtype bfloat16"
    assert sites("a.npy", dtype="bf16")[0].rows.dtype.name == "bfloat16"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0}, "--eps: -1 is no epsilon; give one finite number >= 0"),
        ({"epsilon": math.nan}, "--eps: nan is no epsilon; give one finite number >= 0"),
        ({"epsilon": math.inf}, "--eps: inf is no epsilon; give one finite number >= 0"),
        ({"norm": "batch"}, "--norm: unknown norm 'batch'; choose from layer, rms"),
        ({"norm": "group"}, "--norm: norm 'group' is not supported yet; only layer and rms are"),
        (
            {"dtype": "int4"},
            "--dtype: unknown element type 'int4'; choose from float16, bfloat16, float32, float64, float8_e4m3fn, "
            "float8_e5m2",
        ),
    ],
)
def test_options_that_fit_no_site(options, message):
    with pytest.raises(LnauditError) as caught:
        SiteOptions(**options)
    assert str(caught.value) == message


# patterns


def test_patterns(here):
    for name in ("a.npy", "b.npy", "d/a.npy", "d/e/c.npy", ".h/x.npy", "d/.x.npy"):
        save(name)
    Path("d/readme.txt").write_text("")
    assert sources("*.npy") == ["a.npy", "b.npy"]
    assert sources("d/*") == ["d/a.npy", "c.npy"]
    assert sources("**/*.npy") == ["a.npy", "b.npy", "d/a.npy", "d/e/c.npy"]
    assert sources("d/**/c.npy") == ["d/e/c.npy"]
    assert sources("**/**/**/c.npy") == ["d/e/c.npy"]
    assert sources("./[ab].npy") == ["./a.npy", "./b.npy"]
    assert sources("?.npy") == ["a.npy", "b.npy"]
    assert sources(".h/*.npy") == [".h/x.npy"]
    assert sources("d/.*.npy") == ["d/.x.npy"]
    assert sources(f"{here}/*.npy") == [f"{here}/a.npy", f"{here}/b.npy"]
    assert sources("d/**") == sources("d")
    assert sources("**") == sources(".")


def test_name_with_brackets_is_a_name_first(here):
    save("x[1].npy")
    save("x1.npy")
    assert sources("x[1].npy") == ["x[1].npy"]


@pytest.mark.parametrize("pattern", ["*.npy", "gone/*.npy", "**/x.npy", "readme*"])
def test_pattern_that_matches_nothing(here, pattern):
    Path("readme.txt").write_text("")
    assert look(pattern) == [(pattern, "matches no folder and no .npy file; nothing to audit")]


def test_folders_of_a_pattern_keep_their_manifests(here):
    for folder in ("runs/1", "runs/2"):
        save(f"{folder}/a.npy")
        save(f"{folder}/w.npy", (3,))
        write(folder, entry("norm", weight="w.npy"))
    assert look("runs/*") == ["1/norm", "2/norm"]
    assert look("runs/**") == ["1/norm", "2/norm"]


# names


def test_names_are_unique_by_the_folder(here):
    for name in ("a/x.npy", "b/x.npy", "c/y.npy", "x.npy", "p/k/z.npy", "q/k/z.npy"):
        save(name)
    assert look("a", "b/x.npy", "c/y.npy", "p", "q") == ["a/x", "b/x", "y", "p/k/z", "q/k/z"]
    assert look(".") == ["a/x", "b/x", "y", "p/k/z", "q/k/z", "x"]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ([((), "x"), ((), "x"), ((), "x")], ["x", "x#2", "x#3"]),
        ([((), "x"), ((), "x"), ((), "x#2")], ["x", "x#3", "x#2"]),
        ([(("a",), "x"), ((), "a/x"), (("b",), "x")], ["a/x", "a/x#2", "b/x"]),
        ([(("a", "k"), "x"), (("b", "k"), "x"), (("k",), "y")], ["a/k/x", "b/k/x", "y"]),
        ([], []),
    ],
)
def test_unique_names(wanted, names):
    assert unique_names(wanted) == names


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from("ab"), max_size=2).map(tuple), st.sampled_from(["x", "x#2", "a/x"])))
)
def test_names_are_always_unique(wanted):
    names = unique_names(wanted)
    assert len(set(names)) == len(wanted)


def test_not_audited_says_where_and_why(here):
    (item,) = find_sites(["gone.npy"], SiteOptions()).open()
    assert item == NotAudited(source="gone.npy", reason="does not exist")
