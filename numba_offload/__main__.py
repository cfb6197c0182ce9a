"""``python -m numba_offload``."""

import sys

from numba_offload.cli import main

if __name__ == "__main__":
    sys.exit(main())
