"""mlx_lm.server with its own flags; `--version` is added, and nothing is asked of model hubs."""

import importlib.metadata
import os
import pathlib
import sys

# The list of models is one of this folder, and breaks off when it is missing.
hub = pathlib.Path(__file__).with_name("hub")
hub.mkdir(exist_ok=True)
os.environ["HF_HUB_CACHE"] = str(hub)
# Without these a request that names an unknown model would have it looked for outside.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"

if "--version" in sys.argv[1:]:
    told = [f"{name} {importlib.metadata.version(name)}" for name in ("mlx-lm", "mlx")]
    print(", ".join(told))
    sys.exit(0)

from mlx_lm.server import main  # noqa: E402  (the settings above have to come first)

sys.argv[0] = "mlx_lm.server"
main()
