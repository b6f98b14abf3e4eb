#!/usr/bin/env python3
"""Preprocessor of mdBook: removes comments, and turns links to files outside of the book into text.

The book has the files of docs/. Links to the rest of the repository work there, and lead nowhere on a site.
"""

import json
import re
import sys
from pathlib import PurePosixPath

COMMENT = re.compile(r"^ *<!--.*?-->\n?", re.M | re.S)
FENCED = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def resolved(file, target):
    """The path of a link's target below docs/; `None` above it."""
    parts = list(PurePosixPath(file).parent.parts)
    for part in PurePosixPath(target.split("#")[0]).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return "/".join(parts)


def rewritten(text, file, files):
    def link(match):
        if resolved(file, match[2]) not in files:
            return match[1]
        # mdBook writes README.md as index.html.
        return f"[{match[1]}]({match[2].replace('README.md', 'index.md')})"

    # Code is not changed.
    pieces = FENCED.split(COMMENT.sub("", text))
    return "".join(piece if number % 2 else LINK.sub(link, piece) for number, piece in enumerate(pieces))


def chapters(items):
    for item in items:
        if isinstance(item, dict) and (chapter := item.get("Chapter")):
            yield chapter
            yield from chapters(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    found = list(chapters(book.get("items") or book["sections"]))
    files = {chapter["source_path"] for chapter in found}
    for chapter in found:
        if chapter["source_path"]:
            chapter["content"] = rewritten(chapter["content"], chapter["source_path"], files)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
