"""llama.cpp's own HTTP server, as the package xllamacpp carries it, under llama-server's flags.

The package has the server but none of its command line. This file has those of llama-server's flags
that the package can set, under the same names and with the same meaning and defaults; every other
flag is refused, as llama-server refuses what it does not know. Unlike llama-server it reads no
LLAMA_ARG_* variables, loads from files only, and serves one model.
"""

import importlib.metadata
import os
import signal
import sys

import xllamacpp

PACKAGE = "xllamacpp"
ON = ("on", "1", "true", "enabled")
OFF = ("off", "0", "false", "disabled")


class Wrong(Exception):
    """A command line that cannot be."""


def switch(text):
    if text.lower() in ON:
        return True
    if text.lower() in OFF:
        return False
    raise ValueError(f"must be on or off, not {text!r}")


def flash_attention(text):
    kinds = xllamacpp.llama_flash_attn_type
    if text.lower() == "auto":
        return kinds.LLAMA_FLASH_ATTN_TYPE_AUTO
    if switch(text):
        return kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED
    return kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED


def cache_type(text):
    allowed = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
    if text.lower() not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    return getattr(xllamacpp.ggml_type, "GGML_TYPE_" + text.upper())


def alias(text):
    return {name.strip() for name in text.split(",") if name.strip()}


def one(text):
    return [text]


def several(text):
    return [part.strip() for part in text.split(",") if part.strip()]


# Names (the last of a pair is what switches off), the value's name, where it goes in CommonParams,
# how it is read, help. Without a value's name it is a switch.
FLAGS = [
    (("-m", "--model"), "FNAME", "model.path", str, "model path to load"),
    (("-a", "--alias"), "STRING", "model_alias", alias, "set model name aliases, comma-separated"),
    (("--host",), "HOST", "hostnames", one, "ip address to listen (default: 127.0.0.1)"),
    (("--port",), "PORT", "port", int, "port to listen (default: 8080)"),
    (("--reuse-port",), None, "reuse_port", True, "allow multiple sockets to bind to the same port"),
    (("--api-prefix",), "PREFIX", "api_prefix", str, "prefix path the server serves from"),
    (("--api-key",), "KEY", "api_keys", several, "API key to use for authentication, multiple keys comma-separated"),
    (("-to", "--timeout"), "N", ("timeout_read", "timeout_write"), int, "server read/write timeout in seconds (default: 3600)"),
    (("--threads-http",), "N", "n_threads_http", int, "number of threads used to process HTTP requests (default: -1)"),
    (("--sse-ping-interval",), "N", "sse_ping_interval", int, "SSE ping interval in seconds, -1 = none (default: 30)"),
    (("-t", "--threads"), "N", "cpuparams.n_threads", int, "number of CPU threads to use during generation (default: -1)"),
    (("-tb", "--threads-batch"), "N", "cpuparams_batch.n_threads", int, "number of threads to use during batch and prompt processing (default: same as --threads)"),
    (("-c", "--ctx-size"), "N", "n_ctx", int, "size of the prompt context (default: 0, 0 = loaded from model)"),
    (("-n", "--predict", "--n-predict"), "N", "n_predict", int, "number of tokens to predict (default: -1, -1 = infinity)"),
    (("-b", "--batch-size"), "N", "n_batch", int, "logical maximum batch size (default: 2048)"),
    (("-ub", "--ubatch-size"), "N", "n_ubatch", int, "physical maximum batch size (default: 512)"),
    (("--keep",), "N", "n_keep", int, "number of tokens to keep from the initial prompt (default: 0, -1 = all)"),
    (("-np", "--parallel"), "N", "n_parallel", int, "number of server slots (default: -1, -1 = auto: 4 with a unified KV buffer)"),
    (("-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"), None, "kv_unified", True, "use single unified KV buffer shared across all sequences (default: enabled if number of slots is auto)"),
    (("-cb", "--cont-batching", "-nocb", "--no-cont-batching"), None, "cont_batching", True, "whether to enable continuous batching (default: enabled)"),
    (("--cache-prompt", "--no-cache-prompt"), None, "cache_prompt", True, "whether to enable prompt caching (default: enabled)"),
    (("--cache-reuse",), "N", "n_cache_reuse", int, "min chunk size to attempt reusing from the cache via KV shifting (default: 0)"),
    (("-cram", "--cache-ram"), "N", "cache_ram_mib", int, "maximum cache size in MiB (default: 8192, -1 = no limit, 0 = disable)"),
    (("--cache-idle-slots", "--no-cache-idle-slots"), None, "cache_idle_slots", True, "save and clear idle slots on new task (default: enabled)"),
    (("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"), "N", "n_ctx_checkpoints", int, "max number of context checkpoints to create per slot (default: 32)"),
    (("--context-shift", "--no-context-shift"), None, "ctx_shift", True, "whether to use context shift on infinite text generation (default: disabled)"),
    (("-sps", "--slot-prompt-similarity"), "SIMILARITY", "slot_prompt_similarity", float, "how much the prompt of a request must match the prompt of a slot in order to use that slot (default: 0.10)"),
    (("--slot-save-path",), "PATH", "slot_save_path", str, "path to save slot kv cache (default: disabled)"),
    (("-fa", "--flash-attn"), "[on|off|auto]", "flash_attn_type", flash_attention, "set Flash Attention use (default: auto)"),
    (("-ctk", "--cache-type-k"), "TYPE", "cache_type_k", cache_type, "KV cache data type for K (default: f16)"),
    (("-ctv", "--cache-type-v"), "TYPE", "cache_type_v", cache_type, "KV cache data type for V (default: f16)"),
    (("--swa-full",), None, "swa_full", True, "use full-size SWA cache (default: false)"),
    (("-ngl", "--gpu-layers", "--n-gpu-layers"), "N", "n_gpu_layers", int, "max. number of layers to store in VRAM (default: -1)"),
    (("-fit", "--fit"), "[on|off]", "fit_params", switch, "whether to adjust unset arguments to fit in device memory (default: on)"),
    (("--warmup", "--no-warmup"), None, "warmup", True, "whether to perform warmup with an empty run (default: enabled)"),
    (("--metrics",), None, "endpoint_metrics", True, "enable prometheus compatible metrics endpoint (default: disabled)"),
    (("--props",), None, "endpoint_props", True, "enable changing global properties via POST /props (default: disabled)"),
    (("--slots", "--no-slots"), None, "endpoint_slots", True, "expose slots monitoring endpoint (default: enabled)"),
    (("--jinja", "--no-jinja"), None, "use_jinja", True, "whether to use jinja template engine for chat (default: enabled)"),
    (("--chat-template",), "JINJA_TEMPLATE", "chat_template", str, "set custom jinja chat template (default: template taken from model's metadata)"),
    (("-s", "--seed"), "SEED", "sampling.seed", int, "RNG seed (default: -1, use random seed for -1)"),
    (("--temp", "--temperature"), "N", "sampling.temp", float, "temperature (default: 0.80)"),
    (("--top-k",), "N", "sampling.top_k", int, "top-k sampling (default: 40, 0 = disabled)"),
    (("--top-p",), "N", "sampling.top_p", float, "top-p sampling (default: 0.95, 1.0 = disabled)"),
    (("--min-p",), "N", "sampling.min_p", float, "min-p sampling (default: 0.05, 0.0 = disabled)"),
    (("--ignore-eos",), None, "sampling.ignore_eos", True, "ignore end of stream token and continue generating"),
    (("-lv", "--verbosity", "--log-verbosity"), "N", "verbosity", int, "messages with a higher verbosity will be ignored: 1 error, 2 warning, 3 info, 4 trace, 5 debug (default: 3)"),
    (("--log-json",), None, "log_json", True, "write the log as JSON"),
]


def help_text():
    lines = ["----- common params -----", ""]
    entries = [
        ("-h,    --help, --usage", "print usage and exit"),
        ("--version", "show version and build info"),
        ("-v,    --verbose, --log-verbose", "set verbosity level to infinity (i.e. log all messages)"),
    ]
    for names, value, _, _, text in FLAGS:
        shown = ", ".join(names)
        if len(names) > 1 and len(names[0]) < 6 and not names[0].startswith("--"):
            shown = f"{names[0] + ',':<7}" + ", ".join(names[1:])
        entries.append((f"{shown} {value}" if value else shown, text))
    for left, text in entries:
        if len(left) < 40:
            lines.append(f"{left:<40}{text}")
        else:
            lines += [left, " " * 40 + text]
    return "\n".join(lines)


def put(params, place, value):
    for path in (place,) if isinstance(place, str) else place:
        *folders, name = path.split(".")
        holder = params
        for folder in folders:
            holder = getattr(holder, folder)
        # A misspelt name would otherwise become a new attribute that nobody reads.
        if not hasattr(holder, name):
            raise Wrong(f"the package {PACKAGE} has no setting {path}")
        setattr(holder, name, value)


def read(arguments, params):
    """Puts what was typed into the parameters; the places that were set."""
    known = {}
    for names, value, place, reader, _ in FLAGS:
        for name in names:
            known[name] = (value, place, reader, name.startswith(("--no-", "-no")))
    given = set()
    rest = list(arguments)
    while rest:
        name = rest.pop(0)
        if name in ("-v", "--verbose", "--log-verbose"):
            params.verbosity = 2**31 - 1
            continue
        if name not in known:
            raise Wrong(f"invalid argument: {name}")
        value, place, reader, negative = known[name]
        if value is None:
            put(params, place, not negative)
        else:
            if not rest:
                raise Wrong(f"expected value for argument {name}")
            text = rest.pop(0)
            try:
                put(params, place, reader(text))
            except (ValueError, OverflowError, TypeError) as error:
                raise Wrong(f"{name} {text}: {error}") from None
        given.add(place)
    return given


def main(arguments):
    if any(a in ("-h", "--help", "--usage") for a in arguments):
        print(help_text())
        return 0
    version = importlib.metadata.version(PACKAGE)
    if "--version" in arguments:
        build = xllamacpp.BUILD_INFO
        print(f"version: {version} ({PACKAGE})")
        print(f"built with {build['compiler']} for {build['build_target']}")
        return 0
    params = xllamacpp.CommonParams()
    params.port = 8080
    params.ui = False
    params.sampling.seed = 2**32 - 1
    try:
        given = read(arguments, params)
        if "model.path" not in given:
            raise Wrong("a model is needed: -m FNAME")
        if not os.path.isfile(params.model.path):
            raise Wrong(f"failed to open {params.model.path}: no such file")
        for place in ("n_batch", "n_ubatch"):
            if getattr(params, place) < 1:
                raise Wrong(f"{place} must be above 0")
    except Wrong as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1
    if "n_parallel" not in given or params.n_parallel < 1:
        params.n_parallel = 4
        if "kv_unified" not in given:
            params.kv_unified = True
    print(f"llama-server: {PACKAGE} {version}", file=sys.stderr, flush=True)
    stops = {signal.SIGTERM, signal.SIGINT}
    # Before the server's threads begin, so that none of them is stopped in their stead.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # The package raises whatever the server threw.
        print(f"main: exiting: {error}", file=sys.stderr)
        return 1
    signal.sigwait(stops)
    print("llama-server: stopping", file=sys.stderr, flush=True)
    del server
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
