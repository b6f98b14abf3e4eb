"""The wheel has all modules and the mark that the package has types (PEP 561), and its build leaves nothing behind."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
FLIT_MIN = (3, 12)


def has_flit():
    try:
        return tuple(map(int, metadata.version("flit_core").split(".")[:2])) >= FLIT_MIN
    except metadata.PackageNotFoundError:
        return False


class PackageTest(unittest.TestCase):
    @unittest.skipUnless(has_flit(), "flit_core 3.12 or newer is missing (--with-packages installs it)")
    def test_the_wheel_has_modules_and_types(self):
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, "source")
            shutil.copytree(
                FOLDER, source, ignore=shutil.ignore_patterns("__pycache__", "tests", "build", "*.egg-info")
            )
            before = sorted(source.rglob("*"))
            backend = re.search('^build-backend = "(.*)"$', (source / "pyproject.toml").read_text(), re.M).group(1)
            program = f"import sys; import {backend}; {backend}.build_wheel(sys.argv[1])"
            command = [sys.executable, "-c", program, directory]
            # Python may write bytecode, so that an import of the package is noticed.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            built = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            self.assertEqual(sorted(source.rglob("*")), before)
            with zipfile.ZipFile(next(Path(directory).glob("*.whl"))) as wheel:
                found = {name for name in wheel.namelist() if ".dist-info/" not in name}
        modules = {f"postrider/{module.name}" for module in (FOLDER / "src/postrider").glob("*.py")}
        self.assertEqual(found, modules | {"postrider/py.typed"})
