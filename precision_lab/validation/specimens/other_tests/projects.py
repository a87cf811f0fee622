# SPDX-License-Identifier: Apache-2.0
"""The tests of other projects, one row each.

Written from reading each project's tests in 2026; no code is theirs. Where a test draws more than a
verdict needs, there are fewer rows here, and `Setting.cut` says so: more than 256 rows are kept
wherever a project has them, so that faults of long batches show.
"""

from __future__ import annotations

from precision_lab.table import Table
from precision_lab.validation.specimens.other_tests import kernel_checkers
from precision_lab.validation.specimens.other_tests.drawings import (
    constant,
    normal,
    normal_about,
    normal_over_twice_hidden,
    uniform,
)
from precision_lab.validation.specimens.other_tests.setting import Setting, Tolerance

TORCH = {
    "float16": Tolerance(1e-3, 1e-5),
    "bfloat16": Tolerance(1.6e-2, 1e-5),
    "float32": Tolerance(1.3e-6, 1e-5),
}
"""What torch.testing.assert_close forgives by default."""
KERNELBENCH = {
    "float32": Tolerance(1e-4, 1e-4),
    "float16": Tolerance(1e-2, 1e-2),
    "bfloat16": Tolerance(1e-2, 1e-2),
}
"""What KernelBench forgives at each precision."""
ONES, ZEROS = constant(1.0), constant(0.0)
FEWER = "Fewer rows of the long shapes."

settings: Table[Setting] = Table(
    "test setting",
    [
        Setting(
            name="torch-testing",
            source="torch.testing.assert_close, its default tolerances",
            inputs=(normal,), gain=normal, bias=normal, shapes=((256, 1024),), tolerances=TORCH,
            cut="The tool leaves inputs open: standard normal ones, as most of its users draw.",
        ),
        Setting(
            name="vllm",
            source="vllm-project/vllm tests/kernels: test_layernorm",
            norms=("rms",), inputs=(normal_over_twice_hidden,),
            gain=normal_about(1.0, 0.1),
            shapes=((4096, 8), (83, 768), (83, 769), (7, 5120), (7, 5125), (7, 8192)),
            tolerances=dict.fromkeys(TORCH, Tolerance(1e-2, 1e-2)), reference="early",
            cut="Each number of rows (7, 83, 4096) with some hidden sizes instead of all.",
        ),
        Setting(
            name="vllm-batch-invariant",
            source="vllm-project/vllm tests: batch-invariant RMSNorm",
            norms=("rms",), inputs=(normal,), gain=normal,
            shapes=((300, 512), (300, 4096), (7, 8192)),
            tolerances={"float16": Tolerance(1e-2, 1e-2), "bfloat16": Tolerance(1e-1, 1e-1)},
            same_bits=(255, 300),
            cut="Without its one case of extreme values, whose tolerance is twice as wide.",
        ),
        Setting(
            name="flashinfer",
            source="flashinfer-ai/flashinfer tests: test_norm",
            norms=("rms",), inputs=(normal,), gain=normal,
            shapes=(
                (989, 111), (99, 500), (99, 1024), (19, 3072), (19, 3584), (19, 4096), (1, 8192),
                (1, 16384),
            ),
            tolerances={"float16": Tolerance(1e-3, 1e-3)},
            cut="Each number of rows (1, 19, 99, 989) with some hidden sizes instead of all.",
        ),
        Setting(
            name="flashinfer-layer",
            source="flashinfer-ai/flashinfer tests: LayerNorm",
            norms=("layer",), inputs=(normal,), gain=normal, bias=normal, shapes=((989, 1024),),
            tolerances={"bfloat16": Tolerance(1e-2, 1e-2)},
        ),
        Setting(
            name="liger",
            source="linkedin/Liger-Kernel tests: the RMSNorm module",
            norms=("rms",), inputs=(normal,), gain=ONES,
            shapes=((256, 512), (615, 123), (4, 8), (63, 41)),
            tolerances={"float32": Tolerance(1e-6, 1e-4), "bfloat16": Tolerance(2e-2, 2e-1)},
            reference="early",
        ),
        Setting(
            name="liger-layer",
            source="linkedin/Liger-Kernel tests: the LayerNorm module",
            norms=("layer",), inputs=(normal,), gain=ONES, bias=ZEROS,
            shapes=((256, 128), (64, 1500)),
            tolerances={"float32": Tolerance(1e-5, 1e-5), "bfloat16": Tolerance(2e-2, 2e-2)},
            cut="The numbers of rows are not known.",
        ),
        Setting(
            name="apex",
            source="NVIDIA/apex tests: fused layer norm",
            inputs=(normal,), gain=ONES, bias=ZEROS, eps=(1e-5,), shapes=((16, 512), (1024, 512)),
            tolerances={"float16": Tolerance(1e-3, 1e-3), "bfloat16": Tolerance(1.6e-2, 3e-4)},
            reference="wide",
            cut="1024 rows in place of 65536; no specimen can tell them apart.",
        ),
        Setting(
            name="transformer-engine-cpp",
            source="NVIDIA/TransformerEngine tests/cpp: normalization",
            inputs=(uniform(-2.0, 1.0),), gain=uniform(-2.0, 1.0), bias=uniform(-2.0, 1.0),
            eps=(1e-5,), shapes=((71, 229), (29, 541), (260, 6144), (16, 12288)),
            tolerances={
                "float32": Tolerance(5e-6, 5e-7), "float16": Tolerance(1e-3, 1e-5),
                "bfloat16": Tolerance(1e-2, 1e-5),
            },
            reference="wide", rule="either", statistic=5e-5,
            cut=f"{FEWER} Its reference takes mean and reciprocal root from the kernel, and holds"
            " them to 5e-5; here they are exact, and as much is forgiven of each product.",
        ),
        Setting(
            name="transformer-engine-ops",
            source="NVIDIA/TransformerEngine tests/pytorch: fusible operations",
            inputs=(uniform(0.0, 1.0),), gain=uniform(0.0, 1.0), bias=uniform(0.0, 1.0), eps=(0.3,),
            shapes=((64, 32),), tolerances=TORCH, reference="wide",
            cut="Its small shapes are stood for by one; its tolerances are torch's defaults.",
        ),
        Setting(
            name="transformer-engine-numerics",
            source="NVIDIA/TransformerEngine tests/pytorch: test_numerics",
            inputs=(normal,), gain=ONES, bias=ZEROS, eps=(1e-1, 1e-3, 1e-5, 1e-7),
            shapes=((64, 768),),
            tolerances={
                "float32": Tolerance(1.3e-6, 1e-7), "float16": Tolerance(1e-3, 2e-3),
                "bfloat16": Tolerance(1.6e-2, 2e-2),
            },
            cut="The relative limits are taken to be torch's defaults.",
        ),
        Setting(
            name="quack",
            source="Dao-AILab/quack tests: rmsnorm, layernorm",
            inputs=(normal,), gain=normal, shapes=((260, 4096), (4, 65536)),
            tolerances={
                "float32": Tolerance(1e-3, 1e-4), "float16": Tolerance(1e-3, 1e-2),
                "bfloat16": Tolerance(1e-3, 1e-1),
            },
            cut=f"{FEWER} Hidden to 65536 in place of 262144.",
        ),
        Setting(
            name="xformers",
            source="facebookresearch/xformers tests: rms_norm",
            norms=("rms",), inputs=(uniform(0.0, 1.0),), gain=normal, shapes=((64, 4100),),
            tolerances={
                "float32": Tolerance(1e-5, 1e-8), "float16": Tolerance(1e-2, 1e-4),
                "bfloat16": Tolerance(1e-2, 1e-4),
            },
        ),
        Setting(
            name="triton-tutorial",
            source="triton-lang/triton tutorials: layer normalization",
            inputs=(normal_about(-2.3, 0.5),), gain=uniform(0.0, 1.0), bias=uniform(0.0, 1.0),
            eps=(1e-5,), shapes=((260, 8192),), tolerances={"float16": Tolerance(0.0, 1e-2)},
            cut="260 rows in place of 1151.",
        ),
        Setting(
            name="kernelbench",
            source="ScalingIntelligence/KernelBench at 423217d: level 1, RMSNorm over 64 features",
            norms=("rms",), inputs=(uniform(0.0, 1.0),), eps=(1e-5,), shapes=((4096, 64),), draws=5,
            tolerances=KERNELBENCH, reference="steps",
            cut="The features lie in the last axis; 4096 rows in place of 29 million.",
        ),
        Setting(
            name="kernelbench-v0",
            source="ScalingIntelligence/KernelBench v0: RMSNorm over 64 features",
            norms=("rms",), inputs=(uniform(0.0, 1.0),), eps=(1e-5,), shapes=((512, 64),),
            tolerances={"float32": Tolerance(1e-2, 1e-2)},
            cut="The features lie in the last axis.",
        ),
        Setting(
            name="kernelbench-layer",
            source="ScalingIntelligence/KernelBench at 423217d: level 1, LayerNorm",
            norms=("layer",), inputs=(uniform(0.0, 1.0),), eps=(1e-5,), shapes=((4, 65536),),
            draws=5, tolerances=KERNELBENCH, reference="single",
            cut="Rows of 65536 in place of 4.2 million, four of them in place of 16.",
        ),
        Setting(
            name="ggml-rms",
            source="ggml-org/ggml tests: test-backend-ops",
            norms=("rms",), inputs=(uniform(-10.0, 10.0),), eps=(0.0, 1e-6, 1e-4, 1e-1, 10.0),
            shapes=((64, 64),), tolerances={"float32": Tolerance(1e-7, 0.0)}, rule="mean_square",
            cut="Its small shapes are stood for by one.",
        ),
        Setting(
            name="ggml-layer",
            source="ggml-org/ggml tests: test-backend-ops",
            norms=("layer",), inputs=(uniform(-1.0, 1.0),), eps=(0.0, 1e-6, 1e-4, 1e-1, 10.0),
            shapes=((64, 64),), tolerances={"float32": Tolerance(1e-7, 0.0)}, rule="mean_square",
            cut="Its small shapes are stood for by one.",
        ),
        *kernel_checkers.ROWS,
    ],
)  # fmt: skip
"""Every setting, by name."""
