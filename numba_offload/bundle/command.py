"""``python -m numba_offload compile``: a kernel by name into a bundle, and what a bundle holds."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from numba_offload.bundle.compiling import compile_bundle
from numba_offload.bundle.loading import load_bundle
from numba_offload.by_name import find_kernel


def compile_command(where: str, signatures: Sequence[str], targets: str, output: str) -> None:
    """Compile one kernel. Raises OffloadError, and OSError where the file cannot be written."""
    kernel = find_kernel(where)
    wanted = [name.strip() for name in targets.split(",") if name.strip()]
    compile_bundle([(kernel, signature) for signature in signatures], wanted, output)


def bundle_table(path: str) -> Table:
    """What a bundle holds, an image a row. Raises BundleError for a file that is none."""
    bundle = load_bundle(path)
    table = Table(title=f"{escape(path)}, {os.path.getsize(path)} bytes")
    for heading in ("image", "kernel", "arguments", "target", "arch", "kind"):
        table.add_column(heading, overflow="fold")
    table.add_column("bytes", justify="right")
    table.add_column("variant")
    signatures = {kernel.number: kernel for kernel in bundle.kernels}
    for number, image in enumerate(bundle.images):
        kernel, code = signatures[image.kernel], image.built_for
        table.add_row(
            str(number),
            escape(kernel.record.name),
            escape(kernel.signature),
            escape(image.target),
            escape(code.arch),
            code.kind,
            str(len(image.bundled.data)),
            image.variant,
        )
    return table
