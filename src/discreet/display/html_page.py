"""Pages that people keep: one HTML file each, no request to anywhere, no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from pathlib import Path

__all__ = ["assemble_page", "read_page_style"]


def read_page_style(*names: str) -> str:
    """The style sheet of pages, light, dark and printed, followed by others of this folder.

    Parameters
    ----------
    *names : str
        Files next to this module.
    """
    return "".join(
        Path(__file__).with_name(name).read_text("utf-8") for name in ("page.css", *names)
    )


def assemble_page(title: str, style_text: str, sections: Iterable[str], *, generator: str) -> str:
    """Assemble a page whose policy allows its own style sheet and nothing else.

    Parameters
    ----------
    title : str
    style_text : str
    sections : iterable of str
        HTML of the body; empty ones are left out.
    generator : str
        The command that writes the page, by which its pages are recognised.
    """
    style_digest = base64.b64encode(hashlib.sha256(style_text.encode()).digest()).decode()
    content_policy = f"default-src 'none'; style-src 'sha256-{style_digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="{escape(generator)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy}">'
        f"<title>{escape(title)}</title><style>{style_text}</style></head>\n<body>"
        + "\n".join(section for section in sections if section)
        + "</body></html>\n"
    )
