"""The wheel has all modules and the mark that the package has types (PEP 561)."""

import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
SETUPTOOLS_MIN = 77


def has_setuptools():
    try:
        return int(metadata.version("setuptools").split(".")[0]) >= SETUPTOOLS_MIN
    except metadata.PackageNotFoundError:
        return False


class PackageTest(unittest.TestCase):
    @unittest.skipUnless(has_setuptools(), f"setuptools {SETUPTOOLS_MIN} or newer is missing (--with-packages installs it)")
    def test_the_wheel_has_modules_and_types(self):
        with tempfile.TemporaryDirectory() as directory:
            # The build writes beside its sources.
            source = Path(directory, "source")
            shutil.copytree(FOLDER, source, ignore=shutil.ignore_patterns("__pycache__", "tests", "build", "*.egg-info"))
            program = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
            command = [sys.executable, "-c", program, directory]
            built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
            with zipfile.ZipFile(next(Path(directory).glob("*.whl"))) as wheel:
                found = {name for name in wheel.namelist() if ".dist-info/" not in name}
        modules = {f"postrider/{module.name}" for module in (FOLDER / "src/postrider").glob("*.py")}
        self.assertEqual(found, modules | {"postrider/py.typed"})
