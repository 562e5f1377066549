"""Matplotlib: needed only where something is drawn, missing in one line, started whatever is set for it around us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lnaudit import pictures

pytest.importorskip("matplotlib", reason="pictures need the extra report")

DRAW = (
    "import hashlib, numpy as np, lnaudit\n"
    "from lnaudit.pictures import *\n"
    "picture = picture_for(lnaudit.audit(np.eye(4)))\n"
    "print(hashlib.sha256(to_svg(picture).encode() + to_png(picture, dpi=30)).hexdigest())\n"
)


def subprocess_of(code: str, **environment: str) -> str:
    variables = {**os.environ, **environment}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.fixture(scope="module")
def drawn() -> str:
    return subprocess_of(DRAW)


def test_nothing_is_imported_that_is_not_needed() -> None:
    code = (
        "import sys, numpy as np, lnaudit\n"
        "from lnaudit.pictures import *\n"
        "picture = picture_for(lnaudit.audit(np.eye(4)))\n"
        "assert 'matplotlib' not in sys.modules\n"
        "to_svg(picture), to_png(picture, dpi=30)\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess_of(code)


@pytest.mark.parametrize("function", ["to_svg", "to_png"])
def test_without_the_extra_one_line_says_which(function: str) -> None:
    code = (
        "import sys, numpy as np, lnaudit\n"
        "sys.modules['matplotlib'] = None\n"
        "from lnaudit import pictures\n"
        "try:\n"
        f"    pictures.{function}(pictures.picture_for(lnaudit.audit(np.eye(4))))\n"
        "except lnaudit.LnauditError as error:\n"
        "    print(error)\n"
    )
    said = subprocess_of(code)
    assert said == "matplotlib is not installed, and pictures need the extra report; pip install 'lnaudit[report]'\n"


def test_a_broken_library_is_not_a_missing_one() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"), pictures.report_extra():
        raise ModuleNotFoundError("no_such_module", name="no_such_module")


@pytest.mark.parametrize("backend", ["module://matplotlib_inline.backend_inline", "nonexistent", "Qt4Agg", "svg"])
def test_the_backend_of_the_environment_does_not_matter(backend: str, drawn: str) -> None:
    assert subprocess_of(DRAW, MPLBACKEND=backend) == drawn


@pytest.mark.parametrize("content", [b"\xff\xfe broken", b"axes.grid: True\nfont.size: 30\nno colon\nnot.a.key: 1\n"])
@pytest.mark.parametrize("variable", ["MPLCONFIGDIR", "MATPLOTLIBRC"])
def test_a_configuration_does_not_matter(variable: str, content: bytes, drawn: str, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_bytes(content)
    assert subprocess_of(DRAW, **{variable: str(tmp_path)}) == drawn


@pytest.mark.parametrize("folder", ["/dev/null", "/proc/no/such/folder"])
def test_without_a_folder_of_its_own_it_takes_a_temporary_one_without_a_word(folder: str, drawn: str) -> None:
    code = f"{DRAW}import os\nassert os.environ['MPLCONFIGDIR'] == {folder!r}\n"
    assert subprocess_of(code, MPLCONFIGDIR=folder) == drawn


def test_without_any_folder_one_line_says_so() -> None:
    code = (
        "import tempfile, numpy as np, lnaudit\n"
        "from lnaudit import pictures\n"
        "def mkdtemp(*_, **__): raise OSError('read-only')\n"
        "picture = pictures.picture_for(lnaudit.audit(np.eye(4)))\n"
        "tempfile.mkdtemp = mkdtemp\n"
        "try:\n"
        "    pictures.to_svg(picture)\n"
        "except lnaudit.LnauditError as error:\n"
        "    print(error)\n"
    )
    said = subprocess_of(code, MPLCONFIGDIR="/dev/null")
    assert said.startswith("matplotlib does not start (Matplotlib requires access to a writable cache directory")
    assert said.endswith(
        "give it a folder that can be written (MPLCONFIGDIR or TMPDIR) and no broken file matplotlibrc\n"
    )
    assert said.count("\n") == 1


def test_a_broken_file_in_the_working_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_bytes(b"\xff\xfe")
    code = (
        f"import os, numpy as np, lnaudit\nos.chdir({str(tmp_path)!r})\n"
        "from lnaudit import pictures\n"
        "try:\n"
        "    pictures.to_svg(pictures.picture_for(lnaudit.audit(np.eye(4))))\n"
        "except lnaudit.LnauditError as error:\n"
        "    print(error)\n"
    )
    said = subprocess_of(code)
    assert said.startswith("matplotlib does not start ('utf-8' codec can't decode byte 0xff")
    assert said.count("\n") == 1


def test_what_the_program_around_us_set_is_there_afterwards(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 31\n")
    code = (
        f"{DRAW}"
        "import os, logging, matplotlib\n"
        "assert matplotlib.rcParams['font.size'] == 31\n"
        "assert matplotlib.rcParams['backend'] == os.environ['MPLBACKEND'] == 'svg'\n"
        f"assert os.environ['MATPLOTLIBRC'] == {str(tmp_path)!r}\n"
        "assert logging.getLogger('matplotlib').level == logging.NOTSET\n"
    )
    subprocess_of(code, MATPLOTLIBRC=str(tmp_path), MPLBACKEND="svg")
