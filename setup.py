"""The part that is compiled; everything else is in ``pyproject.toml``."""

import sysconfig
from tempfile import TemporaryDirectory

from setuptools import Extension, setup

# Free-threaded Python has no stable ABI.
stable = not sysconfig.get_config_var("Py_GIL_DISABLED")
loops = Extension(
    "treecaps._compiled",
    ["src/treecaps/_compiled.c"],
    depends=["src/treecaps/_vectors.h"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if stable else [],
    extra_compile_args=["-O3", "-Wno-psabi"],
    # Without a compiler NumPy does the same, more slowly.
    optional=True,
    py_limited_api=stable,
)
# In a folder that stays, files of former versions would get into what is installed.
with TemporaryDirectory() as folder:
    options = {"build": {"build_base": folder}}
    if stable:
        options["bdist_wheel"] = {"py_limited_api": "cp311"}
    setup(ext_modules=[loops], options=options)
