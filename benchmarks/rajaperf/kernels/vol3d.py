"""The safe kernel of VOL3D."""

from numba_offload import offload_kernel

VNORMQ = 0.083333333333333333


@offload_kernel
def vol3d(x, y, z, first, jp, kp, vol):
    for i in vol.indices():
        # The zone's eight nodes; the Region is the slice of the zones that begins at `first`.
        n0 = i + first
        n1 = n0 + 1
        n2 = n0 + jp
        n3 = n2 + 1
        n4 = n0 + kp
        n5 = n4 + 1
        n6 = n4 + jp
        n7 = n6 + 1

        x71 = x[n7] - x[n1]
        x72 = x[n7] - x[n2]
        x74 = x[n7] - x[n4]
        x30 = x[n3] - x[n0]
        x50 = x[n5] - x[n0]
        x60 = x[n6] - x[n0]

        y71 = y[n7] - y[n1]
        y72 = y[n7] - y[n2]
        y74 = y[n7] - y[n4]
        y30 = y[n3] - y[n0]
        y50 = y[n5] - y[n0]
        y60 = y[n6] - y[n0]

        z71 = z[n7] - z[n1]
        z72 = z[n7] - z[n2]
        z74 = z[n7] - z[n4]
        z30 = z[n3] - z[n0]
        z50 = z[n5] - z[n0]
        z60 = z[n6] - z[n0]

        xps = x71 + x60
        yps = y71 + y60
        zps = z71 + z60
        cyz = y72 * z30 - z72 * y30
        czx = z72 * x30 - x72 * z30
        cxy = x72 * y30 - y72 * x30
        total = xps * cyz + yps * czx + zps * cxy

        xps = x72 + x50
        yps = y72 + y50
        zps = z72 + z50
        cyz = y74 * z60 - z74 * y60
        czx = z74 * x60 - x74 * z60
        cxy = x74 * y60 - y74 * x60
        total += xps * cyz + yps * czx + zps * cxy

        xps = x74 + x30
        yps = y74 + y30
        zps = z74 + z30
        cyz = y71 * z50 - z71 * y50
        czx = z71 * x50 - x71 * z50
        cxy = x71 * y50 - y71 * x50
        total += xps * cyz + yps * czx + zps * cxy

        vol[i] = VNORMQ * total
