# SPDX-License-Identifier: Apache-2.0
"""What a row says of the code that made it."""

from __future__ import annotations

import ast
import io
import shutil
import subprocess
import sys
import tokenize

import kernel_file
import pytest

import precision_lab
from precision_lab import canonical_json as canonical
from precision_lab import versions
from precision_lab.inputs.packaged import captures
from precision_lab.kernels.finding import find_kernel
from precision_lab.plan.table import plans
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured

FILES = sorted(versions.PACKAGE.rglob("*.py"))
TEXTS = [file.read_text(encoding="utf-8") for file in FILES]
# Cases of every kind: families and a capture, a plan, one of its steps exact, another beside it, a
# kernel that is a plan, a kernel in a file, orders and formats that have code of their own.
MEASURE = """
import sys
from precision_lab import canonical_json
from precision_lab.sweeps.case import Case
from precision_lab.sweeps.measurement import measure
for line in sys.stdin:
    print(canonical_json.encode(measure(Case(**canonical_json.decode(line)))))
"""


def test_versions_are_text():
    """Each is a word or two that a file can hold."""
    found = versions.versions()
    assert precision_lab.__version__ == found["precision_lab"]
    assert all(isinstance(text, str) and text.isascii() for text in found.values())


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package that may be edited."""
    copy = tmp_path / "precision_lab"
    shutil.copytree(versions.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(versions, "PACKAGE", copy)
    yield copy
    versions._read.cache_clear()


def digest():
    """The digest of the files as they are now."""
    versions._read.cache_clear()
    return versions.code.__wrapped__()


def append(file, text):
    """Write at the end of a file."""
    with file.open("a") as stream:
        stream.write(text)


def insert(file, line):
    """Write a statement below the file's first imports."""
    future = "from __future__ import annotations\n"
    source = file.read_text()
    assert source.count(future) == 1
    file.write_text(source.replace(future, f"{future}\n{line}\n"))


class TestEdits:
    """What is edited where, and whether rows are those of other code from then on."""

    @pytest.mark.parametrize(
        "name",
        [
            "arithmetic/odd.py", "norm/ground_truth.py", "plan/emulation.py",
            "plan/bounds/welford.py", "numbers/table.py", "arithmetic/orders/xla.py",
            "inputs/synthetic.py", "exceptions.py",
            "kernels/onnx/graphs.py", "sweeps/measurement.py", "norm/__init__.py",
            "sweeps/__init__.py",
        ],
    )  # fmt: skip
    def test_what_measures(self, package, name):
        """A statement is other code; a comment, a docstring, a blank line and a type are not."""
        before = digest()
        append(package / name, "\n# edited\n\n\n")
        insert(package / name, "# Above, too.")
        head, tail = (package / name).read_text().split('"""', 1)
        (package / name).write_text(f'{head}"""It is said otherwise: (\n\n{tail}')
        append(
            package / name, 'if TYPE_CHECKING:\n    from precision_lab.eps import advice\n"""x"""\n'
        )
        assert before == digest()
        append(package / name, "EDITED = 1\n")
        assert before != digest()

    @pytest.mark.parametrize(
        "name",
        [
            "eps/advice.py", "cli/plans.py", "report/build.py", "sweeps/grid.py",
            "sweeps/workers.py", "norm/textbook.py", "models/released.py",
            "identification/search.py", "__init__.py",
            "plan/catalogue/torch.py", "plan/table.py", "versions.py",
        ],
    )  # fmt: skip
    def test_what_does_not(self, package, name):
        """Code that asks for rows, keeps, judges or shows them, and rows that a case tells."""
        before = digest()
        append(package / name, "EDITED = 1\n")
        (package / "new.py").write_text("NEW = 1\n")
        assert before == digest()

    def test_faces(self, package):
        """A name that a face passes on besides is no other code; where it leads to is."""
        before = digest()
        insert(package / "norm/__init__.py", "from precision_lab.norm.textbook import textbook")
        assert before == digest()
        (package / "norm/other_truth.py").write_text("truth = None\n")
        face = package / "norm/__init__.py"
        moved = "from precision_lab.norm.other_truth import truth as truth\n"
        face.write_text(
            face.read_text()
            .replace("import Truth, truth", "import Truth")
            .replace(
                "\nfrom precision_lab.norm.agreement", f"\n{moved}from precision_lab.norm.agreement"
            )
        )
        assert before != digest()
        assert "norm/other_truth.py" in versions.code_of(versions.MEASUREMENT)

    def test_captures(self, package):
        """Rows are measured of what the package ships."""
        before = digest()
        append(package / "inputs/data/minilm.safetensors", " ")
        assert before != digest()

    @pytest.mark.parametrize(
        "line",
        [
            "def later():\n    from precision_lab.eps import recommend_eps",
            "def later():\n    from precision_lab.eps.advice import (\n  # y\n  x,\n )",
            "def later():\n    import precision_lab.eps.advice as x",
            "def later():\n    from precision_lab.eps import advice as x",
        ],
    )
    def test_imports_in_functions(self, package, line):
        """They are run as well: what they import counts from then on."""
        assert "eps/advice.py" not in versions.code_of(versions.MEASUREMENT)
        insert(package / "arithmetic/odd.py", line)
        before = digest()
        assert "eps/advice.py" in versions.code_of(versions.MEASUREMENT)
        append(package / "eps/advice.py", "# edited\n")
        assert before == digest()
        append(package / "eps/advice.py", "EDITED = 1\n")
        assert before != digest()


class TestFiles:
    """Which files measuring a case takes."""

    def test_no_other_file_is_needed(self, tmp_path):
        """A package of these files and of bare faces measures cases to the same bits.

        In it every import of a file that was overlooked fails.
        """
        whole, alone = tmp_path / "whole", tmp_path / "alone"
        shutil.copytree(versions.PACKAGE, whole / "precision_lab")
        assert self.measured(whole) == self.measured(self.copied(alone))

    def test_each_is_looked_for(self, tmp_path):
        """Without one of the files there is no case that can be measured."""
        root = self.copied(tmp_path)
        (root / "precision_lab/arithmetic/orders/error_factors.py").unlink()
        with pytest.raises(subprocess.CalledProcessError):
            self.measured(root)

    def copied(self, folder):
        """A copy of the code that measures, with the parts of faces that lead to it."""
        kept = {*versions.code_of(versions.MEASUREMENT)}
        aside = [versions.PACKAGE / name for name in versions.ASIDE if name != "__init__.py"]
        for path in aside:
            files = path.rglob("*.py") if path.is_dir() else [path]
            kept |= {file.relative_to(versions.PACKAGE).as_posix() for file in files}
        data = versions.PACKAGE.rglob("*.safetensors")
        kept |= {file.relative_to(versions.PACKAGE).as_posix() for file in data}
        for name in kept:
            target = folder / "precision_lab" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(versions.PACKAGE / name, target)
        for inner in [path for path in folder.rglob("*") if path.is_dir()]:
            face = versions.PACKAGE / inner.relative_to(folder / "precision_lab") / "__init__.py"
            if face.is_file() and not (inner / "__init__.py").is_file():
                (inner / "__init__.py").write_text(self.bare(face, kept))
        return folder

    def bare(self, face, kept):
        """The imports of a face that lead to files that are kept."""
        lines = []
        for node in ast.parse(face.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module.startswith("precision_lab"):
                place = node.module.partition(".")[2].replace(".", "/")
                if {f"{place}.py", f"{place}/__init__.py"} & kept:
                    lines.append(ast.unparse(node))
        return "\n".join(lines)

    def measured(self, root):
        """What cases of every kind come to in a package that lies in a folder."""
        first = captures["minilm"].load().layers[0]
        file = root / "mine.py"
        file.write_text(kernel_file.TEXT)
        common = {"hidden": 24, "rows": 3, "weight_formats": [None, "float32"]}
        grids = [
            Sweep(
                **common, plans=["late", "all-low"], exact=["none", "square"], against="early",
                inputs=["normal", "massive-activations"], formats=["bf16", "e4m3fn"],
                scales="per_tensor",
            ),
            Sweep(norm="layer", inputs=captured("minilm", first.name)),
            Sweep(**common, plans=[p for p in plans.values() if p.norm == "rms"]),
            Sweep(
                **common, norm="layer", biases="random",
                plans=[p for p in plans.values() if p.norm == "layer"],
            ),
            Sweep(**common, kernels=find_kernel("hf-llama", name="a plan")),
            Sweep(**common, kernels=f"{file}:wide", formats="float32"),
        ]  # fmt: skip
        lines = [canonical.encode(case.record) for grid in grids for case in grid.cases()]
        assert len(lines) > 100
        ran = subprocess.run(
            [sys.executable, "-c", MEASURE],
            input="\n".join(lines), cwd=root, env={"PYTHONPATH": str(root)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert len(lines) == ran.stdout.count("\n")
        return ran.stdout


class TestReading:
    """Source is read without a syntax tree: to the same end."""

    def test_text(self):
        """What is left of each file of the package is what a tree and a tokenizer leave of it."""
        for file, text in zip(FILES, TEXTS, strict=True):
            assert (file, expected_text(text)) == (file, versions.code_text(text)[0])

    def test_imports(self):
        """The imports of each file of the package are those of its tree."""
        for file, text in zip(FILES, TEXTS, strict=True):
            tree = ast.parse(text)
            for_types = {
                inner
                for node in ast.walk(tree)
                if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
                for statement in node.body
                for inner in ast.walk(statement)
            }
            nodes = [node for node in ast.walk(tree) if node not in for_types]
            expected = {
                (node.module, alias.name)
                for node in nodes
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
                if node.module.startswith("precision_lab")
            } | {
                (alias.name.rpartition(".")[0], alias.name.rpartition(".")[2])
                for node in nodes
                if isinstance(node, ast.Import)
                for alias in node.names
                if alias.name.startswith("precision_lab")
            }
            found = versions._read(file)[1]
            assert (file, expected) == (file, {(m, name) for m, names in found for name in names})

    def test_strings_and_comments(self):
        """A mark within another is no mark."""
        source = (
            'x = "# no comment"  # a "comment\n'
            "y = '''\n# none\n'''\n"
            'z = (\n    """no docstring"""\n)\n'
            'def f():\n    r"""One\\."""  # noqa: x\n    return "\\"#"\n'
        )
        expected = (
            'x = "# no comment"\n'
            "y = '''\n# none\n'''\n"
            'z = (\n    """no docstring"""\n)\n'
            'def f():\n    return "\\"#"\n'
        )
        assert expected == versions.code_text(source)[0]


def expected_text(source):
    """Source without comments, strings that are statements, blank lines and what is for types."""
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        string = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if string and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            end = node.body[-1].end_lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())
