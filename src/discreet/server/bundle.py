"""Files of the respondent's page: the same bytes for everyone, under one digest.

The page, its modules, styles and words are read once from the package. Every module is loaded with
its hash (an import map with integrity), and the hash of that map is in the content policy; one
digest stands for all of it. The same files can be written for another host (``discreet page``) and
compared with what a server serves (``discreet verify``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from discreet.files.documents import compute_digest
from discreet.server.headers import make_content_policy

__all__ = ["Bundle", "load_templates"]

SERVER_FOLDER = Path(__file__).parent
STATIC_ROOT = "/static/"
RELATIVE_STATIC_ROOT = "./static/"
"""Relative to the page, which is in a folder on another host."""
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}

COMMENT_PATTERN = re.compile(r"/\*.*?\*/ ?|(?:^|(?<=[;,{)(]))[ \t]*// [^\n\"'`]*$", re.S | re.M)
"""Comments as written in the files of this package; a test compares the remaining code."""


@cache  # compiled once for a process
def load_templates() -> jinja2.Environment:
    """Load the templates of all pages, escaped; a missing name is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(SERVER_FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )


def _read_installed_files() -> dict[str, bytes]:
    static_folder = SERVER_FOLDER / "static"
    paths = [*static_folder.glob("*.js"), *static_folder.glob("words/*.json")]
    paths += [static_folder / "style.css", static_folder / "icon.svg"]
    return {
        path.relative_to(static_folder).as_posix(): encode_for_serving(
            path.read_text("utf-8"), path.suffix
        )
        for path in sorted(paths)
    }


def encode_for_serving(text: str, suffix: str) -> bytes:
    """Encode a file for serving: JavaScript and styles lose comments and indentation.

    The lines of code stay as they are, so that it can be compared with the source by eye.
    """
    if suffix not in (".js", ".css"):
        return text.encode()
    bare_text = COMMENT_PATTERN.sub("", text)
    code_lines = filter(None, map(str.strip, bare_text.splitlines()))
    return ("\n".join(code_lines) + "\n").encode()


@dataclass(frozen=True, eq=False)
class Bundle:
    """The files of the respondent's page.

    Parameters
    ----------
    files : mapping of name to bytes
        Relative to the folder of static files; those of the package if not given.
    """

    files: Mapping[str, bytes] = field(default_factory=_read_installed_files)

    def compute_integrity(self, name: str) -> str:
        """Compute the hash of a file for subresource integrity."""
        return _hash_content(self.files[name])

    @property
    def module_names(self) -> list[str]:
        """Names of all JavaScript modules."""
        return [file_name for file_name in self.files if file_name.endswith(".js")]

    @cached_property
    def words(self) -> dict[str, dict[str, Any]]:
        """The catalogues of words by language tag, English first."""
        catalogues = {
            Path(file_name).stem: json.loads(content)
            for file_name, content in self.files.items()
            if file_name.startswith("words/")
        }
        return {"en": catalogues["en"], **catalogues}

    @cached_property
    def hash_listing(self) -> str:
        """SHA-256 of the page (without its own digest) and of every file that it loads."""
        page_files = {
            **self.files,
            "index.html": self._render_template(STATIC_ROOT, "", "", "").encode(),
        }
        return "".join(
            f"{hashlib.sha256(page_files[file_name]).hexdigest()}  {file_name}\n"
            for file_name in sorted(page_files)
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the listing: one digest for the page and all that it loads."""
        return compute_digest(self.hash_listing.encode())

    def format_import_map(self, root: str = STATIC_ROOT) -> str:
        """Format the import map, with the hash that each module must have."""
        module_hashes = {
            root + module_name: self.compute_integrity(module_name)
            for module_name in self.module_names
        }
        return json.dumps({"integrity": module_hashes}, separators=(",", ":"))

    def build_policy(self, root: str = STATIC_ROOT, collector: str = "") -> str:
        """Build the content policy that allows this page and nothing else."""
        policy = make_content_policy([_hash_content(self.format_import_map(root).encode())])
        if not collector:
            return policy
        # in the page itself: frames are refused by a header or not at all
        policy = policy.replace("connect-src 'self'", f"connect-src 'self' {collector}")
        return policy.replace("frame-ancestors 'none'; ", "")

    def render_page(self, collector: str = "", survey: str = "") -> str:
        """Render the page; it is the same for all surveys of a server.

        Parameters
        ----------
        collector, survey : str
            Where reports go, for a page on another host than the collector's.
        """
        return self._render_template(
            RELATIVE_STATIC_ROOT if collector else STATIC_ROOT, collector, survey, self.digest
        )

    def write_files(self, folder: Path, collector: str, survey: str) -> list[Path]:
        """Write the page for another host; return the paths written.

        Parameters
        ----------
        folder : path
        collector : str
            Address of the server that takes the reports.
        survey : str
            Its name there.
        """
        page_files = {"index.html": self.render_page(collector, survey).encode()}
        page_files |= {f"static/{file_name}": content for file_name, content in self.files.items()}
        written_paths = []
        for file_name, content in page_files.items():
            file_path = folder / file_name
            file_path.parent.mkdir(parents=True, exist_ok=True)
            file_path.write_bytes(content)
            written_paths.append(file_path)
        return written_paths

    def _render_template(self, root: str, collector: str, survey: str, digest: str) -> str:
        return (
            load_templates()
            .get_template("respond.html")
            .render(
                root=root,
                collector=collector,
                survey=survey,
                digest=digest,
                policy=self.build_policy(root, collector) if collector else "",
                integrity=self.compute_integrity,
                importmap=Markup(self.format_import_map(root)),
                modules=self.module_names,
                words=[(tag, f"words/{tag}.json") for tag in self.words],
                texts=self.words,
            )
        )


def _hash_content(content: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()
