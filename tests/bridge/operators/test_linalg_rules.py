"""Result rules of linear algebra and Fourier transforms compared with torch's fake tensors."""

from __future__ import annotations

import torch
from tests.bridge.operators.drawers import choose, tensor
from tests.bridge.operators.fake_calls import Drawer, agreement

REAL = (torch.float32, torch.float64)
BOTH = (*REAL, torch.complex64, torch.int64)
SQUARE = tensor("33", "233", "33", "34", "3", dtypes=BOTH)
MATRIX = tensor("34", "43", "234", "33", "3", dtypes=BOTH)
UPLO = choose("L", "U", "l", "X")
CASES: list[tuple[str, dict[str, Drawer]]] = [
    *(
        (f"aten.{name}.default", {"self": SQUARE, "A": SQUARE, "UPLO": UPLO, "n": choose(0, 1, 2, -1)})
        for name in (
            *(
                "linalg_cholesky",
                "linalg_cholesky_ex",
                "cholesky",
                "linalg_inv",
                "linalg_inv_ex",
                "inverse",
                "matrix_exp",
            ),
            *(
                "linalg_matrix_exp",
                "linalg_matrix_power",
                "linalg_det",
                "_linalg_det",
                "det",
                "logdet",
                "linalg_slogdet",
            ),
            *(
                "_linalg_slogdet",
                "slogdet",
                "linalg_eigh",
                "_linalg_eigh",
                "linalg_eigvalsh",
                "linalg_eig",
                "linalg_eigvals",
            ),
            *("linalg_ldl_factor", "linalg_ldl_factor_ex", "cholesky_inverse"),
        )
    ),
    *(
        (
            f"aten.{name}.default",
            {
                "self": MATRIX,
                "A": MATRIX,
                "input": MATRIX,
                "mode": choose("reduced", "complete", "r", "x"),
                "driver": choose(None),
            },
        )
        for name in (
            *("linalg_qr", "qr", "linalg_svd", "_linalg_svd", "svd", "linalg_svdvals", "linalg_lu", "linalg_lu_factor"),
            *("linalg_lu_factor_ex", "geqrf", "pinverse", "linalg_cond"),
        )
    ),
    ("aten.linalg_pinv.atol_rtol_float", {"self": MATRIX, "hermitian": choose(False)}),
    ("aten.linalg_pinv.rcond_tensor", {"self": tensor("243", "43"), "rcond": tensor("", "2", "51", "3")}),
    (
        "aten.linalg_pinv.atol_rtol_tensor",
        {"self": tensor("243", "43"), "atol": tensor("", "2", "51"), "rtol": tensor("", "2", "3")},
    ),
    ("aten.linalg_matrix_rank.atol_rtol_float", {"self": MATRIX, "hermitian": choose(False)}),
    *(
        (
            f"aten.{name}.default",
            {
                "A": tensor("33", "233", dtypes=REAL),
                "B": tensor("34", "234", "3", "23", "43", like="A"),
                "left": choose(True),
            },
        )
        for name in ("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex")
    ),
    (
        "aten.linalg_solve_triangular.default",
        {"self": tensor("33", "233", dtypes=REAL), "B": tensor("34", "234", like="self"), "left": choose(True)},
    ),
    (
        "aten.linalg_solve_triangular.default",
        {"self": tensor("33", dtypes=REAL), "B": tensor("43", "34", like="self"), "left": choose(False)},
    ),
    (
        "aten.triangular_solve.default",
        {"self": tensor("34", "234", dtypes=REAL), "A": tensor("33", "233", like="self")},
    ),
    (
        "aten.cholesky_solve.default",
        {"self": tensor("34", "234", dtypes=REAL), "input2": tensor("33", "233", like="self")},
    ),
    ("aten.linalg_householder_product.default", {"input": tensor("43", dtypes=REAL), "tau": tensor("3", like="input")}),
    (
        "aten.ormqr.default",
        {
            "self": tensor("33", dtypes=REAL),
            "input2": tensor("3", like="self"),
            "input3": tensor("34", like="self"),
            "left": choose(True),
        },
    ),
    (
        "aten.linalg_lstsq.default",
        {"self": tensor("43", dtypes=REAL), "b": tensor("42", "4", like="self"), "driver": choose(None)},
    ),
    ("aten.linalg_tensorinv.default", {"self": tensor("632", "6321", dtypes=REAL), "ind": choose(1, 2, 0)}),
    (
        "aten.linalg_tensorsolve.default",
        {"self": tensor("2366", "236", dtypes=REAL), "other": tensor("23", like="self"), "dims": choose(None)},
    ),
    ("aten.linalg_vander.default", {"x": tensor("3", "23", ""), "N": choose(None, 2, 5)}),
    (
        "aten.linalg_cross.default",
        {"self": tensor("23", "13", "24", dtypes=REAL), "other": tensor("23", "3", like="self"), "dim": choose(-1, 1)},
    ),
    (
        "aten.cross.default",
        {"self": tensor("23", "33", dtypes=REAL), "other": tensor("23", "33", like="self"), "dim": choose(-1, 1)},
    ),
    (
        "aten.linalg_diagonal.default",
        {"A": tensor("34", "234"), "offset": choose(0, 1, -1, 5), "dim1": choose(-2, 0), "dim2": choose(-1, 1)},
    ),
    ("aten.cumulative_trapezoid.dx", {"y": tensor("34", "5", "", dtypes=BOTH), "dim": choose(-1, 0)}),
    ("aten.trapezoid.dx", {"y": tensor("34", "5", "", dtypes=BOTH), "dim": choose(-1, 0)}),
    ("aten.trapezoid.x", {"y": tensor("34", dtypes=REAL), "x": tensor("4", "34", like="y"), "dim": choose(-1)}),
    (
        "aten.trapezoid.x",
        {"y": tensor("34", "33"), "x": tensor("34", "24", "14", "32", "3", "4", "33"), "dim": choose(-1, -2, 0)},
    ),
]
SIGNAL = tensor("6", "56", "456", "", dtypes=(torch.float32, torch.float64, torch.int64, torch.complex64))
NORM = choose(None, None, "ortho", "forward", "x")
for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    CASES += [
        (f"aten.fft_{_name}.default", {"self": SIGNAL, "n": choose(None, 4, 7, 0), "dim": choose(-1, 0), "norm": NORM}),
        (
            f"aten.fft_{_name}2.default",
            {"self": SIGNAL, "s": choose(None, [4, 5]), "dim": choose([-2, -1]), "norm": NORM},
        ),
        (
            f"aten.fft_{_name}n.default",
            {"self": SIGNAL, "s": choose(None, [4, 5], [4]), "dim": choose(None, [0], [-2, -1]), "norm": NORM},
        ),
    ]
CASES += [
    ("aten.fft_fftshift.default", {"self": tensor("56", "456"), "dim": choose(None, [0], [5])}),
    (
        "aten.fft_fftfreq.default",
        {
            "n": choose(4, 7),
            "dtype": choose(None, torch.float64),
            "layout": choose(None),
            "device": choose(None),
            "pin_memory": choose(None),
        },
    ),
    (
        "aten.fft_rfftfreq.default",
        {
            "n": choose(4, 7),
            "dtype": choose(None),
            "layout": choose(None),
            "device": choose(None),
            "pin_memory": choose(None),
        },
    ),
    (
        "aten._fft_r2c.default",
        {
            "self": tensor("56", "456", dtypes=REAL),
            "dim": choose([1], [0, 1]),
            "normalization": choose(0),
            "onesided": choose(True, False),
        },
    ),
    (
        "aten._fft_c2c.default",
        {
            "self": tensor("56", dtypes=(torch.complex64,)),
            "dim": choose([1]),
            "normalization": choose(0),
            "forward": choose(True),
        },
    ),
    (
        "aten._fft_c2r.default",
        {
            "self": tensor("56", dtypes=(torch.complex64,)),
            "dim": choose([1], [0, 1]),
            "normalization": choose(0),
            "last_dim_size": choose(10, 11),
        },
    ),
    (
        "aten.stft.center",
        {
            "self": lambda draw: draw.tensor(*draw.rng.choice(((40,), (2, 40))), dtypes=(torch.float32,)),
            "n_fft": choose(8, 9, 100),
            "hop_length": choose(None, 3, 0),
            "win_length": choose(None, 8),
            "window": choose(None),
            "onesided": choose(None, True, False),
            "return_complex": choose(True, False),
            "align_to_window": choose(None),
            "pad_mode": choose("constant"),
        },
    ),
    (
        "aten.istft.default",
        {
            "self": tensor("257", "57", dtypes=(torch.complex64,)),
            "n_fft": choose(8),
            "hop_length": choose(None, 3),
            "win_length": choose(None),
            "window": lambda draw: draw.tensor(8, dtypes=(torch.float32,)),
            "onesided": choose(None, True),
            "length": choose(None, 9),
            "return_complex": choose(False),
            "center": choose(True),
        },
    ),
]
test_rules_agree_with_fake_tensors = agreement(CASES, 8, refused=True)
