"""The command ``python -m numba_offload``: a function for each subcommand, which returns the exit status."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

from numba_offload.errors import OffloadError


def parser() -> argparse.ArgumentParser:
    """Every subcommand with its options; ``run`` is the function that serves it."""
    made = argparse.ArgumentParser(
        prog="python -m numba_offload",
        description="Safe partitioned kernels with automatic transfers, on the CPU and on GPUs.",
    )
    commands = made.add_subparsers(title="commands", dest="command", required=True)

    demo = commands.add_parser(
        "demo",
        help="run several kernels under several partitions and check each against NumPy",
        description="Run several kernels under several partitions, check each result against NumPy, and show "
        "how the arguments were mapped and how many bytes moved. The exit status is 0 if every check passes, "
        "else 1.",
    )
    demo.add_argument(
        "--target",
        metavar="NAME",
        help="cpu, cuda ... (default: the first that works here). On the CPU every check is made in both "
        "memory models: unified, and discrete, where each transfer is a real copy",
    )
    demo.set_defaults(run=_demo)

    info = commands.add_parser(
        "info", help="show versions, and which targets work here and why others do not"
    )
    info.set_defaults(run=_info)

    compiled = commands.add_parser(
        "compile",
        help="compile a kernel beforehand, for several targets, into one file",
        description="Compile a kernel for given types of arguments and given targets into one file, which "
        "numba_offload.load_bundle loads. Example: compile module:kernel "
        "--signature 'f8, f8[::1], Region(f8[::1])' --targets cpu,sm_90,gfx90a -o file",
    )
    compiled.add_argument(
        "kernel", nargs="?", metavar="MODULE:KERNEL", help="or path/to/file.py:KERNEL; the module is imported"
    )
    compiled.add_argument(
        "--signature",
        metavar="TYPES",
        action="append",
        default=[],
        help="the types of the kernel's arguments; may be given several times",
    )
    compiled.add_argument(
        "--targets",
        metavar="NAMES",
        default="cpu",
        help="separated by commas: cpu, cpu:host, cpu:PROCESSOR, sm_90, compute_90, gfx90a ... (default: cpu)",
    )
    compiled.add_argument("-o", "--output", metavar="FILE", help="the bundle to write")
    compiled.add_argument("--list", metavar="FILE", help="show what a bundle holds")
    compiled.set_defaults(run=_compile, usage=compiled)

    explain = commands.add_parser(
        "explain",
        help="show how a kernel's arguments are mapped for given types, with the lines that decide it",
        description="Show for each argument of a kernel whether it goes to the device, comes back, or both, and the lines of the "
        "kernel that decide it. Nothing is run but the module, which is imported. Example: explain module:kernel "
        "--signature 'f8, f8[::1], Region(f8[::1])'",
    )
    explain.add_argument("kernel", metavar="MODULE:KERNEL", help="or path/to/file.py:KERNEL")
    explain.add_argument(
        "--signature",
        metavar="TYPES",
        action="append",
        required=True,
        help="the types of the kernel's arguments, as for compile; may be given several times",
    )
    explain.set_defaults(run=_explain)

    verify = commands.add_parser(
        "verify",
        help="check that a partition strategy of yours gives each element to one thread",
        description="Check a strategy as a launch would before it uses it: exhaustively, in compiled form, for the shape and the "
        "threads at hand. The exit status is 1, and two threads with the element that both own are shown, where it is no "
        "partition. Example: verify strategies.py:'Every(3)' --shape 1000x1000 --threads 4096",
    )
    verify.add_argument(
        "strategy", metavar="MODULE:STRATEGY", help="a strategy, or its class with parameters; or path/to/file.py:STRATEGY"
    )
    verify.add_argument(
        "--shape",
        metavar="EXTENTS",
        action="append",
        default=[],
        help="of the array, such as 1000x1000; may be given several times (default: a range of small ones)",
    )
    verify.add_argument(
        "--threads",
        metavar="EXTENTS",
        help="of the launch: a number; for strategies over a grid an extent for each axis of the array, for those over blocks "
        "BLOCKSxTHREADS (default: what a launch without a configuration has)",
    )
    verify.set_defaults(run=_verify)

    from numba_offload.lint.command import add_options, check_command

    check = commands.add_parser(
        "check",
        help="find repeated transfers, broken borrows and refused writes in a program, without running it",
        description="Report what is wrong or slow in host programs and kernels, from their text alone: transfers that repeat in "
        "a loop, preloads that start late, uses of borrowed arrays, writes that are refused. The exit status is 1 if something "
        "is found, 2 if a file cannot be read, else 0. A comment '# numba-offload: ignore[NO101]' switches a rule off for its "
        "line.",
    )
    add_options(check)
    check.set_defaults(run=check_command)
    return made


def console() -> Console:
    """Where tables go; piped output must not lose columns to an assumed width of 80."""
    made = Console()
    return made if made.is_terminal else Console(width=160)


def _demo(options: argparse.Namespace, out: Console) -> int:
    from numba_offload.demo.report import run_demo

    return 0 if run_demo(out, options.target) else 1


def _info(options: argparse.Namespace, out: Console) -> int:
    from numba_offload.diagnostics.info import info_tables

    for table in info_tables():
        out.print(table)
    return 0


def _compile(options: argparse.Namespace, out: Console) -> int:
    from numba_offload.bundle.command import bundle_table, compile_command

    if options.list is None:
        if not (options.kernel and options.signature and options.output):
            options.usage.error("needs MODULE:KERNEL, at least one --signature, and --output; or --list FILE")
        compile_command(options.kernel, options.signature, options.targets, options.output)
    out.print(bundle_table(options.list or options.output))
    return 0


def _explain(options: argparse.Namespace, out: Console) -> int:
    from numba_offload.commands import explain_command

    return explain_command(options.kernel, options.signature, out)


def _verify(options: argparse.Namespace, out: Console) -> int:
    from numba_offload.commands import verify_command

    return verify_command(options.strategy, options.shape, options.threads, out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0, or 1 where a check failed or the command could not be carried out."""
    options = parser().parse_args(arguments)
    out = console()
    try:
        return int(options.run(options, out))
    except (OffloadError, OSError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        out.print(f"error: {text}", style="bold red", markup=False, highlight=False)
        return 1
