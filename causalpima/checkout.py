"""In a checkout `inference`, `models`, `guides` and `examples` are other names of `causalpima.inference` and so on."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

__all__ = ["FOLDERS", "alias"]


FOLDERS = ("models", "guides", "inference", "examples")


class _Alias(MetaPathFinder, InspectLoader):
    """Finds `inference.svi` as the module `causalpima.inference.svi`: one object under two names, not two."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in FOLDERS or "." not in fullname:
            return None
        real = importlib.util.find_spec(f"causalpima.{fullname}")
        if real is None:
            return None
        is_package = real.submodule_search_locations is not None
        spec = importlib.util.spec_from_loader(fullname, self, origin=real.origin, is_package=is_package)
        assert spec is not None
        spec.has_location = True
        return spec

    def exec_module(self, module: ModuleType) -> None:
        # An import returns what stands in `sys.modules` afterwards, whatever module it began with.
        sys.modules[module.__name__] = importlib.import_module(f"causalpima.{module.__name__}")

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m inference.svi` runs."""
        spec = importlib.util.find_spec(f"causalpima.{fullname}")
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(spec.name)


def alias(folder: str) -> None:
    """Let a folder at the top of the checkout be the package of that name in `causalpima`.

    Args:
        folder: One of `FOLDERS`, which is being imported.
    """
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())
    sys.modules[folder] = importlib.import_module(f"causalpima.{folder}")
