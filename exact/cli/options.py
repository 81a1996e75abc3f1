"""Options that mean the same in every command, and the habits they share.

A command raises `InvalidInput` and returns; turning errors into one line and an exit code is done in one place
(`run`), for all the command lines of this project.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich._null_file import NULL_FILE
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.segment import Segment

from exact.cli import usage
from exact.enumeration.exits import checked, told
from exact.enumeration.rationals import long_numbers
from exact.enumeration.walk import EnumerationError
from exact.runtime import atomic_files, executors, streams
from exact.runtime.journal import subject
from exact.runtime.own_code import notes_opened
from exact.runtime.pickling import WorkerError
from exact.runtime.provenance import Provenance, of_command
from rheo_core import DEFAULT_SUPPORT, InvalidInput, TreeShape
from rheo_core.models import Prefix

if TYPE_CHECKING:
    from exact.methods.rows_file import Rows

LOSSLESS, LOSSY, BAD_INPUT, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130

CLOSED = "output: got a closed stdout, expected one that can be written"
PIPED_WIDTH = 120  # columns where output is not a terminal and COLUMNS is not set


class _Console(Console):
    """A console of the command's own output, which shows control characters in what it is given as escapes.

    It goes quiet when nobody reads it any more: the verdict stays the exit code.
    """

    @property
    def file(self) -> IO[str]:
        """Where the command writes, whatever the code under test makes of `sys.stdout`."""
        found: IO[str] = self._file or (streams.own_err() if self.stderr else streams.own()) or NULL_FILE
        return found

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            each if each.control else each._replace(text="\n".join(map(streams.visible, each.text.split("\n"))))
            for each in buffer
        )

    def on_broken_pipe(self) -> None:
        """What is printed from here on goes nowhere."""
        self.quiet = True
        nowhere()


def nowhere() -> None:
    """Stdout to nowhere, with what is still buffered: Python would fail on it at exit."""
    with suppress(UnsupportedOperation, AttributeError, OSError, ValueError):  # without a file: it takes all that comes
        os.dup2(os.open(os.devnull, os.O_WRONLY), streams.own().fileno())


out = _Console(emoji=False)  # :memo: in what a user named is a name
err = Console(stderr=True, emoji=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = PIPED_WIDTH


def writable(name: str) -> Callable[[typer.Context, Path | None], Path | None]:
    """Give the callback of an option that names a file to be written: one that cannot be is refused before any work.

    So is a file that the same call names elsewhere, to be read or to be written: it would be lost.
    """

    def check(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None:
            atomic_files.check_writable(path, name)
            if path.is_file() or not path.exists():  # a device or a pipe takes all that comes
                written: dict[str, str] = context.meta.setdefault("written", {})
                other = written.setdefault(os.path.realpath(path), name)
                if other != name:
                    raise InvalidInput(f"{other} and {name}", str(path), "a file of its own for each")
                if path.is_file() and sum(_names(word, path) for word in _line[1:]) > 1:
                    raise InvalidInput(name, str(path), "a file that this call does not name elsewhere")
        return path

    return check


def _names(word: str, path: Path) -> bool:
    """Tell whether a word of the command line is this file: FILE, --option=FILE, FILE:name."""
    value = word.partition("=")[2] if word.startswith("-") else word
    return os.path.realpath(path) in {os.path.realpath(each) for each in (value, value.rpartition(":")[0]) if each}


def drawable(context: typer.Context, path: Path | None) -> Path | None:
    """Give the callback of `--plot`: also the ending and the extra that drawing needs."""
    if path is not None:
        need("plot", "matplotlib")
        atomic_files.check_figure(path, "plot")
    return writable("plot")(context, path)


def readable_page(context: typer.Context, path: Path | None) -> Path | None:
    """Give the callback of `--report`: also the ending by which a browser knows a page."""
    writable("report")(context, path)
    if path is not None and (path.is_file() or not path.exists()) and path.suffix.lower() not in atomic_files.PAGES:
        raise InvalidInput("report", str(path), f"a file that ends in {' or '.join(atomic_files.PAGES)}")
    return path


Methods = Annotated[
    list[str] | None,
    typer.Option("--method", help="NAME or path.py:name (runs that file); repeatable.", show_default=False),
]
MethodArguments = Annotated[
    list[str] | None, typer.Argument(metavar="[METHOD]...", help="Same as --method.", show_default=False)
]
RowsPath = Annotated[
    Path | None, typer.Option("--rows", help="Rows file (JSON); the shipped real rows without it.", show_default=False)
]
Width = Annotated[int, typer.Option("--width", help="K: slots a parent, and parents expanded a level.")]
Depth = Annotated[int, typer.Option("--depth", help="D: levels of the draft tree.")]
Budget = Annotated[int, typer.Option("--budget", help="R: drafted nodes kept.")]
Lead = Annotated[int | None, typer.Option("--lead", help="m: deterministic leads before the sampled slot.")]
Temperature = Annotated[float, typer.Option("--temperature", help="T of the target and of the sampled token.")]
Support = Annotated[int, typer.Option("--support", help="Tokens kept in the sampling law; 0: all.")]
Arithmetic = Annotated[str, typer.Option("--arithmetic", help="rational, float64, float32 or float16.")]
PrefixText = Annotated[str, typer.Option("--prefix", help='Start after this text: ids joined by ",".')]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Save = Annotated[
    Path | None,
    typer.Option("--save", help="Write the JSON document to FILE.", metavar="FILE", callback=writable("save")),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write one self-contained HTML page, to be sent to a colleague.",
        metavar="FILE",
        callback=readable_page,
        show_default=False,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw to FILE: .png, .svg or .pdf (extra `plot`).", metavar="FILE", callback=drawable),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Processes; 0: one for each processor.", show_default=False)
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", help="Scheduler of a Dask cluster (extra `dask`).", metavar="ADDRESS", show_default=False),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        help="Journal of finished work: written as it comes, and read again.",
        metavar="FILE",
        callback=writable("resume"),
    ),
]


@contextmanager
def opened(workers: int | None, dask: str | None, default: int = 1) -> Iterator[Executor | None]:
    """The executor that `--workers` and `--dask` ask for (neither: `default` processes); None is this process."""
    if dask is None:
        with executors.processes(default if workers is None else workers) as pool:
            yield pool
        return
    if workers is not None:
        raise InvalidInput("workers and dask", f"{workers} and {dask}", "one of them: processes here, or a cluster")
    need("dask", "distributed")
    with executors.cluster(dask) as cluster:
        yield cluster


def fingerprint(specs: Sequence[str], *things: Any) -> str:
    """The digest by which a journal knows its sweep: methods by name, with the text of their files, and the rest."""
    paths = [Path(spec.rpartition(":")[0]) for spec in specs if ":" in spec]
    return subject(specs, [path.read_bytes() for path in paths if path.is_file()], *things)


def rows_of(
    path: Path | None, temperature: float = 1, support: int = DEFAULT_SUPPORT, arithmetic: str = "rational"
) -> list[Rows]:
    """Give the rows file at `path`, or the shipped ones."""
    from exact.methods.rows_file import read_rows, shipped_rows  # with all methods, which --help does not need

    if support < 0:
        raise InvalidInput("support", support, "an int of at least 1, or 0 for the full vocabulary")
    kept = support or None
    if path is None:
        return shipped_rows(temperature, kept, arithmetic)
    return [read_rows(path, temperature, kept, arithmetic)]


def shape_of(width: int, depth: int, budget: int) -> TreeShape:
    """Give the tree shape of the three options."""
    return TreeShape(width, depth, budget)


def prefix_of(text: str) -> Prefix:
    """Give the ids of `--prefix`."""
    ids = text.split(",") if text else []
    if not all(each.strip().isdecimal() for each in ids):
        raise InvalidInput("prefix", text, 'token ids joined by ","')
    return tuple(int(each) for each in ids)


def progress(show: bool, *columns: str | ProgressColumn) -> Progress:
    """Give a bar of progress on stderr, where that is a terminal."""
    return Progress(*columns, console=err, transient=True, disable=not show or not err.is_terminal)


def deliver(document: Mapping[str, Any], as_json: bool, save: Path | None, compared: Any = None) -> None:
    """Print the document if asked to, and write it to a file in one step if asked to.

    `compared` is what must come out alike under every hash seed; None: the whole document.
    """
    text = json.dumps(document, indent=2)
    _compared.append(document if compared is None else compared)
    if as_json:
        streams.own().write(text + "\n")
    if save is not None:
        atomic_files.save_text(save, text + "\n")


def need(extra: str, *modules: str) -> None:
    """Raise one line naming the extra when one of its modules is not installed."""
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise InvalidInput("extra", f"{module} not installed", f"pip install 'rheo-lossless[{extra}]'")


_line: list[str] = []  # the command line that is being run
_compared: list[Any] = []  # what it has delivered


def provenance() -> Provenance:
    """What makes the result of the command that is being run."""
    return of_command(_line)


def compared() -> list[Any]:
    """What the command has delivered, as it must come out alike under every hash seed."""
    found: list[Any] = json.loads(json.dumps(_compared, sort_keys=True, default=repr))
    return found


def run(app: typer.Typer, arguments: list[str] | None = None) -> int:
    """Run a command line in this process: its exit code; bad input is one line on stderr and 2, Ctrl-C 130."""
    if sys.stdout is None:
        return refuse(CLOSED)
    words = sys.argv[1:] if arguments is None else arguments
    printed = streams.Printed()
    with streams.kept_apart(printed):
        code, message = outcome(app, [app.info.name or Path(sys.argv[0]).name, *words])
    if message is not None:
        return refuse(message)
    if code == INTERRUPTED:
        return interrupted()
    if note := printed.note():
        sys.stderr.write(note + "\n")
    return code


def outcome(app: typer.Typer, line: list[str]) -> tuple[int, str | None]:
    """Give the exit code of a command line, and the one line of its refusal; no exception comes out of it."""
    _line[:] = line
    _compared.clear()
    try:
        command = typer.main.get_command(app)
        if hasattr(streams.own(), "reconfigure"):
            streams.own().reconfigure(errors="backslashreplace")  # a name that its encoding does not have
        with long_numbers():
            code = command.main(args=line[1:], prog_name=line[0], standalone_mode=False)
        streams.own().flush()
    except usage.UsageError as error:
        return BAD_INPUT, usage.refusal(error, line[0])
    except (InvalidInput, EnumerationError, WorkerError) as error:
        return BAD_INPUT, str(error)
    except RecursionError:
        too_deep = "something too deep (a document's nesting, or a --depth of hundreds)"
        return BAD_INPUT, f"input: got {too_deep}, expected what --help describes"
    except (OverflowError, MemoryError) as error:
        return BAD_INPUT, f"input: got a number or a size that is too large ({told(error)}), expected smaller ones"
    except OSError as error:
        nowhere()
        reason = error.strerror or error
        return BAD_INPUT, f"{error.filename or 'output'}: got {reason}, expected files and streams that can be used"
    except KeyboardInterrupt as error:
        if checked("command", error) is error or not notes_opened():  # no user's file was run that could raise it
            return INTERRUPTED, None
        return BAD_INPUT, f"{line[0]}: got {told(error)}, expected code that returns"
    except typer.Abort:
        return INTERRUPTED, None  # some versions of Typer return it themselves
    except BaseException as error:
        if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):  # Typer's end of it
            nowhere()
            return BAD_INPUT, "output: got a reader that stopped reading, expected one that reads to the end"
        if "RHEO_TRACEBACK" in os.environ:
            traceback.print_exception(error)
        expected = "no such error: report it, with what RHEO_TRACEBACK=1 prints"
        return BAD_INPUT, f"{line[0]}: got {told(error)}, expected {expected}"
    return (code if isinstance(code, int) else 0), None


def interrupted() -> int:
    """Give the exit code after a Ctrl-C, and its line."""
    if sys.stderr is not None:
        sys.stderr.write("interrupted\n")
    return INTERRUPTED


def refuse(message: str) -> int:
    """Say in one line on stderr why there is no result; the exit code."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(streams.visible(" ".join(f"error: {message}".split())) + "\n")
    return BAD_INPUT
