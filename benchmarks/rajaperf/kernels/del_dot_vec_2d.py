"""The safe kernel of DEL_DOT_VEC_2D."""

from numba_offload import offload_kernel

TINY = 1e-20
HALF = 0.5


@offload_kernel
def del_dot_vec_2d(x, y, xdot, ydot, jp, div):
    for p in div.indices():
        # The zone's nodes, counter-clockwise from the lower right; its own index is the fourth.
        n1 = p + 1
        n2 = p + 1 + jp
        n3 = p + jp

        x1, x2, x3, x4 = x[n1], x[n2], x[n3], x[p]
        y1, y2, y3, y4 = y[n1], y[n2], y[n3], y[p]
        u1, u2, u3, u4 = xdot[n1], xdot[n2], xdot[n3], xdot[p]
        v1, v2, v3, v4 = ydot[n1], ydot[n2], ydot[n3], ydot[p]

        ax = HALF * (x1 + x2 - x3 - x4)
        bx = HALF * (x2 + x3 - x4 - x1)
        ay = HALF * (y1 + y2 - y3 - y4)
        by = HALF * (y2 + y3 - y4 - y1)
        au = HALF * (u1 + u2 - u3 - u4)
        bu = HALF * (u2 + u3 - u4 - u1)
        av = HALF * (v1 + v2 - v3 - v4)
        bv = HALF * (v2 + v3 - v4 - v1)

        r = 1.0 / (ax * by - bx * ay + TINY)
        dfxdx = r * (au * by - bu * ay)
        dfydy = r * (bv * ax - av * bx)
        div[p] = dfxdx + dfydy + (v1 + v2 + v3 + v4) / (y1 + y2 + y3 + y4)
