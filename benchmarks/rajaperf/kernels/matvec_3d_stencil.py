"""The safe kernel of MATVEC_3D_STENCIL."""

from numba_offload import offload_kernel


# fmt: off - one row of names for each plane reads better than one name a line
@offload_kernel
def matvec_3d_stencil(
    x_dbl, x_dbc, x_dbr, x_dcl, x_dcc, x_dcr, x_dfl, x_dfc, x_dfr,
    x_cbl, x_cbc, x_cbr, x_ccl, x_ccc, x_ccr, x_cfl, x_cfc, x_cfr,
    x_ubl, x_ubc, x_ubr, x_ucl, x_ucc, x_ucr, x_ufl, x_ufc, x_ufr,
    m_dbl, m_dbc, m_dbr, m_dcl, m_dcc, m_dcr, m_dfl, m_dfc, m_dfr,
    m_cbl, m_cbc, m_cbr, m_ccl, m_ccc, m_ccr, m_cfl, m_cfc, m_cfr,
    m_ubl, m_ubc, m_ubr, m_ucl, m_ucc, m_ucr, m_ufl, m_ufc, m_ufr,
    b,
):
    for i in b.indices():
        b[i] = (
            m_dbl[i] * x_dbl[i] + m_dbc[i] * x_dbc[i] + m_dbr[i] * x_dbr[i]
            + m_dcl[i] * x_dcl[i] + m_dcc[i] * x_dcc[i] + m_dcr[i] * x_dcr[i]
            + m_dfl[i] * x_dfl[i] + m_dfc[i] * x_dfc[i] + m_dfr[i] * x_dfr[i]
            + m_cbl[i] * x_cbl[i] + m_cbc[i] * x_cbc[i] + m_cbr[i] * x_cbr[i]
            + m_ccl[i] * x_ccl[i] + m_ccc[i] * x_ccc[i] + m_ccr[i] * x_ccr[i]
            + m_cfl[i] * x_cfl[i] + m_cfc[i] * x_cfc[i] + m_cfr[i] * x_cfr[i]
            + m_ubl[i] * x_ubl[i] + m_ubc[i] * x_ubc[i] + m_ubr[i] * x_ubr[i]
            + m_ucl[i] * x_ucl[i] + m_ucc[i] * x_ucc[i] + m_ucr[i] * x_ucr[i]
            + m_ufl[i] * x_ufl[i] + m_ufc[i] * x_ufc[i] + m_ufr[i] * x_ufr[i]
        )
# fmt: on
