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

from discreet.documents import digest_of
from discreet.server.headers import content_policy

__all__ = ["Bundle", "templates"]

HERE = Path(__file__).parent
ROOT = "/static/"
ABROAD = "./static/"
"""Relative to the page, which is in a folder on another host."""
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}

COMMENT = re.compile(r"/\*.*?\*/ ?|(?:^|(?<=[;,{)(]))[ \t]*// [^\n\"'`]*$", re.S | re.M)
"""Comments as written in the files of this package; a test compares the remaining code."""


@cache  # compiled once for a process
def templates() -> jinja2.Environment:
    """Load the templates of all pages, escaped; a missing name is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )


def _installed() -> dict[str, bytes]:
    static = HERE / "static"
    paths = [*static.glob("*.js"), *static.glob("words/*.json")]
    paths += [static / "style.css", static / "icon.svg"]
    return {
        path.relative_to(static).as_posix(): served(path.read_text("utf-8"), path.suffix)
        for path in sorted(paths)
    }


def served(text: str, suffix: str) -> bytes:
    """Encode a file for serving: JavaScript and styles lose comments and indentation.

    The lines of code stay as they are, so that it can be compared with the source by eye.
    """
    if suffix not in (".js", ".css"):
        return text.encode()
    bare = COMMENT.sub("", text)
    lines = filter(None, map(str.strip, bare.splitlines()))
    return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True, eq=False)
class Bundle:
    """The files of the respondent's page.

    Parameters
    ----------
    files : mapping of name to bytes
        Relative to the folder of static files; those of the package if not given.
    """

    files: Mapping[str, bytes] = field(default_factory=_installed)

    def integrity(self, name: str) -> str:
        """Compute the hash of a file for subresource integrity."""
        return _hash(self.files[name])

    @property
    def modules(self) -> list[str]:
        """Names of all JavaScript modules."""
        return [name for name in self.files if name.endswith(".js")]

    @cached_property
    def words(self) -> dict[str, dict[str, Any]]:
        """The catalogues of words by language tag, English first."""
        found = {
            Path(name).stem: json.loads(content)
            for name, content in self.files.items()
            if name.startswith("words/")
        }
        return {"en": found["en"], **found}

    @cached_property
    def listing(self) -> str:
        """SHA-256 of the page (without its own digest) and of every file that it loads."""
        parts = {**self.files, "index.html": self._page(ROOT, "", "", "").encode()}
        return "".join(
            f"{hashlib.sha256(parts[name]).hexdigest()}  {name}\n" for name in sorted(parts)
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the listing: one digest for the page and all that it loads."""
        return digest_of(self.listing.encode())

    def importmap(self, root: str = ROOT) -> str:
        """Format the import map, with the hash that each module must have."""
        hashes = {root + name: self.integrity(name) for name in self.modules}
        return json.dumps({"integrity": hashes}, separators=(",", ":"))

    def policy(self, root: str = ROOT, collector: str = "") -> str:
        """Build the content policy that allows this page and nothing else."""
        policy = content_policy([_hash(self.importmap(root).encode())])
        if not collector:
            return policy
        # in the page itself: frames are refused by a header or not at all
        policy = policy.replace("connect-src 'self'", f"connect-src 'self' {collector}")
        return policy.replace("frame-ancestors 'none'; ", "")

    def page(self, collector: str = "", survey: str = "") -> str:
        """Render the page; it is the same for all surveys of a server.

        Parameters
        ----------
        collector, survey : str
            Where reports go, for a page on another host than the collector's.
        """
        return self._page(ABROAD if collector else ROOT, collector, survey, self.digest)

    def write(self, folder: Path, collector: str, survey: str) -> list[Path]:
        """Write the page for another host; return the paths written.

        Parameters
        ----------
        folder : path
        collector : str
            Address of the server that takes the reports.
        survey : str
            Its name there.
        """
        texts = {f"static/{name}": content for name, content in self.files.items()}
        made = []
        for name, content in {"index.html": self.page(collector, survey).encode(), **texts}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            made.append(path)
        return made

    def _page(self, root: str, collector: str, survey: str, digest: str) -> str:
        return _template().render(
            root=root,
            collector=collector,
            survey=survey,
            digest=digest,
            policy=self.policy(root, collector) if collector else "",
            integrity=self.integrity,
            importmap=Markup(self.importmap(root)),
            modules=self.modules,
            words=[(tag, f"words/{tag}.json") for tag in self.words],
            texts=self.words,
        )


def _template() -> jinja2.Template:
    return templates().get_template("respond.html")


def _hash(content: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()
