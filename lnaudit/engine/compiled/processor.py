"""What the processor has that not all have."""

from __future__ import annotations

import platform

from llvmlite import binding

_FEATURES = binding.get_host_cpu_features()
_ARM = platform.machine().lower() in ("aarch64", "arm64")
# conversions between float16 and float32; elsewhere the compiler would call functions that are not there
HAS_HALF = _ARM or bool(_FEATURES.get("f16c"))
# multiplication and addition rounded once
HAS_FMA = _ARM or bool(_FEATURES.get("fma"))
