"""causalPIMA in Pyro: which hidden features multimodal data have, and how they depend on each other.

`__init__.pyi` lists the public surface, which is imported when it is asked for: `import causalpima` costs nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
