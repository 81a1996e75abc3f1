"""`gpu_runner data`: where the six question sets come from; fetches them, and checks a folder of sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from gpu_runner.reproduce.question_sets import COMMIT, FILE, QUESTIONS, REPOSITORY, SETS
from gpu_runner.reproduce.set_files import PUBLIC, Checked, check_folder, fetch_all
from rheo_core import InvalidInput


@options.bundled
def command(
    *,
    check: Annotated[
        Path | None, typer.Option("--check", help="Check every set in this folder.", metavar="DIR", show_default=False)
    ] = None,
    fetch: Annotated[
        Path | None, typer.Option("--fetch", help="Fetch the sets into this folder.", metavar="DIR", show_default=False)
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--sets", help="Fetch this set; repeatable; all without.", show_default=False),
    ] = None,
    base: Annotated[str, typer.Option("--from", help="Address that NAME/question.jsonl lies under.")] = PUBLIC,
    output: options.OutputOptions,
) -> int:
    """Say where the question sets come from and under which licences; fetch them; check a folder of sets.

    Exit code of --check: 0 where every set is whole, 2 where a line is bad, a question is asked twice, or turns or
    questions are missing; every problem is named.
    """
    if check is not None and fetch is not None:
        raise InvalidInput("check", str(check), "--check or --fetch, one at a time")
    if sets and fetch is None:
        raise InvalidInput("sets", ", ".join(sets), "--fetch DIR with it")
    if fetch is not None:
        done: dict[str, str] = {}
        for name, what in fetch_all(fetch, list(dict.fromkeys(sets or SETS)), base):
            done[name] = what
            if not output.as_json:
                shared.out.print(f"{fetch / name / FILE}: {what}", highlight=False, markup=False)
        output.deliver({"command": "data", "from": base, "fetched": done})
        return 0
    if check is not None:
        found = check_folder(check)
        if not output.as_json:
            report(check, found)
        output.deliver({"command": "data", "folder": str(check), "sets": [vars(each) for each in found]})
        return shared.BAD_INPUT if any(each.problems for each in found) else 0
    if not output.as_json:
        sources()
    output.deliver(document())
    return 0


def document() -> dict[str, Any]:
    """The sets, JSON-ready."""
    sets = {name: {**vars(info), "columns": list(info.columns)} for name, info in SETS.items()}
    return {"command": "data", "repository": REPOSITORY, "commit": COMMIT, "questions": QUESTIONS, "sets": sets}


def sources() -> None:
    """The table of the six sets and how to get them."""
    table = _table("set", "title", "from", "licence", "turns")
    for name, info in SETS.items():
        table.add_row(name, info.title, info.source, info.licence, str(info.turns))
    show(table, "title", "from", "licence", "")
    for line in (
        f"{QUESTIONS} questions each, as NAME/{FILE}, chosen by {REPOSITORY}, commit {COMMIT} (eagle/data)",
        "gpu_runner data --fetch DIR   fetches them and compares their checksums; mind the licences",
        "gpu_runner data --check DIR   checks every line of a folder, one of your own sets too",
    ):
        shared.out.print(line, style="dim", highlight=False)


def report(folder: Path, found: list[Checked]) -> None:
    """What each set holds, and every problem on a line of its own."""
    table = _table("set", "questions", "turns", "problems", "")
    for each in found:
        known = "a set of your own" if each.pinned is None else f"{'' if each.pinned else 'not '}the file at {COMMIT}"
        table.add_row(each.name, str(each.questions), str(each.turns), str(len(each.problems)), known)
    show(table, "title", "from", "licence", "")
    missing = [name for name in SETS if name not in {each.name for each in found}]
    if missing:
        shared.out.print(f"not in {folder}: {', '.join(missing)}", style="dim", highlight=False)
    for each in found:
        for problem in each.problems:
            shared.out.print(problem, highlight=False, markup=False, soft_wrap=True)


def _table(*headings: str) -> Table:
    table = blank_table()
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("questions", "turns", "problems") else "left")
    return table
