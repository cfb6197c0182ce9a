"""Findings as text for readers, as JSON, and as annotations of GitHub's."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from numba_offload.lint.check import Checked
from numba_offload.lint.finding import Finding, Unreadable

FORMATS = ("text", "json", "github")


def report(checked: Checked, form: str, out: Console) -> None:
    """Print what was found in one of the formats."""
    {"text": _text, "json": _json, "github": _github}[form](checked, out)


def _plain(out: Console, text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)


# ----------------------------------------------------------------------------------------------------------------- text


def _text(checked: Checked, out: Console) -> None:
    for finding in checked.findings:
        out.print(_shown(finding), soft_wrap=True)
    for unread in checked.unreadable:
        where = f"{unread.path}:{unread.line}" if unread.line else str(unread.path)
        out.print(Text.assemble((where, "bold"), ": ", ("cannot be checked", "bold red"), f": {unread.reason}"), soft_wrap=True)
    files = f"{checked.files} {'file' if checked.files == 1 else 'files'}"
    number = len(checked.findings)
    what = f"{number} {'finding' if number == 1 else 'findings'}" if number else "nothing found"
    _plain(out, f"{what} in {files}")


def _shown(finding: Finding) -> Text:
    place = finding.place
    number = str(place.line)
    margin = " " * (len(number) + 2) + "| "
    end = place.end_column if place.end_line == place.line else len(finding.source.rstrip()) + 1
    # Tabs stay tabs under the line, so that the marks stand below what they mark.
    before = "".join("\t" if c == "\t" else " " for c in finding.source[: place.column - 1])
    return Text.assemble(
        (f"{place.path}:{place.line}:{place.column}", "bold"), ": ", (finding.code, "bold red"), f" {finding.message}\n",
        (f" {number} | ", "dim"), f"{finding.source}\n",
        (margin, "dim"), before, ("^" * max(1, end - place.column), "bold red"), "\n",
        (margin, "dim"), ("Fix: ", "bold"), f"{finding.fix}\n",
    )


# ------------------------------------------------------------------------------------------------------------- machines


def _json(checked: Checked, out: Console) -> None:
    def entry(record: Finding | Unreadable) -> dict[str, object]:
        fields = asdict(record)
        fields |= fields.pop("place", {})
        return {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}

    made = {
        "findings": [entry(finding) for finding in checked.findings],
        "unreadable": [entry(unread) for unread in checked.unreadable],
        "files": checked.files,
    }
    _plain(out, json.dumps(made, indent=2))


def _github(checked: Checked, out: Console) -> None:
    for f in checked.findings:
        at = {
            "file": f.place.path, "line": f.place.line, "endLine": f.place.end_line, "col": f.place.column,
            "endColumn": f.place.end_column, "title": f.code,
        }
        _plain(out, _command("warning", at, f"{f.message}\nFix: {f.fix}"))
    for u in checked.unreadable:
        _plain(out, _command("error", {"file": u.path, **({"line": u.line} if u.line else {})}, u.reason))


def _command(kind: str, properties: dict[str, object], message: str) -> str:
    """A workflow command, in GitHub's escapes."""

    def escaped(text: object, more: bool) -> str:
        made = str(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        return made.replace(":", "%3A").replace(",", "%2C") if more else made

    shown = ",".join(f"{name}={escaped(value, True)}" for name, value in properties.items())
    return f"::{kind} {shown}::{escaped(message, False)}"
