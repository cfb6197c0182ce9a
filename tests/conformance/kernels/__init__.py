"""The kernels of the conformance suite: these files, unchanged, on every target.

Floating-point results are compared with NumPy's, so kernels that could fuse a multiplication and an addition are
compiled with ``contract=False``.
"""

from kernels.accumulators import *  # noqa: F403
from kernels.blocks import *  # noqa: F403
from kernels.calls import *  # noqa: F403
from kernels.control_flow import *  # noqa: F403
from kernels.elements import *  # noqa: F403
from kernels.errors import *  # noqa: F403
from kernels.indexing import *  # noqa: F403
from kernels.mathematics import *  # noqa: F403
from kernels.records import *  # noqa: F403
from kernels.unsafe import *  # noqa: F403
