"""Declarations for TypeScript, made of what the modules of a device say in their comments.

Run as a program it writes them beside the modules; a test compares them with what is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from programs import STATIC, tsc  # noqa: E402

OPTIONS = (
    "--declaration --emitDeclarationOnly --strict --allowJs --target es2022 --module es2022 "
    "--lib es2022,dom --moduleResolution bundler --outDir made draw.js promise.js"
)


def make_declarations() -> dict[str, str]:
    """The declarations of every module that an app needs, by file name."""
    program = tsc()
    assert program is not None, "tsc is not here: npm install typescript, DISCREET_TSC"
    with tempfile.TemporaryDirectory() as folder:
        for path in [*STATIC.glob("*.js"), STATIC / "types.d.ts"]:
            shutil.copy(path, folder)
        subprocess.run([program, *OPTIONS.split()], cwd=folder, check=True)
        return {path.name: path.read_text() for path in sorted(Path(folder, "made").iterdir())}


if __name__ == "__main__":
    for file_name, text in make_declarations().items():
        (STATIC / file_name).write_text(text)
