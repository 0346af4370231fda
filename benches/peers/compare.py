"""Runs the same streaming load with flashrig, AIPerf and GuideLLM in turns and prints what a
received token costs each in CPU time. Started by run.sh.

The load: N streams at once, each of 20 tokens a second whatever runs beside it, answers of a fixed
length. Every client does it twice, once with a wave of N requests and once with several waves. The
difference of CPU time over the difference of tokens is what a token costs, with all that is paid
once (imports, tokenizer, calibration, charts) taken off. Tokens are counted by the server.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from importlib import metadata
from pathlib import Path

from process_cpu import Failed, measure

TOKENS_PER_S = 20
PROMPT_TOKENS = 128
# The simulated server counts four bytes of prompt as a token.
PROMPT_BYTES = 4 * PROMPT_TOKENS
MODEL = "ideal-sim"
HEAD = """\
| streams | client | tokens received | CPU s | of it once | CPU µs per token | times flashrig's |
|---:|---|---:|---:|---:|---:|---:|"""
FILLER = "so many words stand here that a prompt of a known length comes of them "


class Server:
    """`flashrig sim`, ended with the block."""

    def __init__(self, flashrig):
        self.flashrig = flashrig

    def __enter__(self):
        step_ms = 1000 / TOKENS_PER_S
        command = [self.flashrig, "sim", "--profile", "ideal-batching"]
        command += ["--listen", "127.0.0.1:0", "--set", "max_concurrent=10000"]
        command += ["--set", f"decode=[{{ batch = 1, step_ms = {step_ms} }}]"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stdout.readline()).group()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def tokens(self):
        """Tokens generated so far, by its metrics."""
        with urllib.request.urlopen(f"{self.url}/metrics") as answer:
            metrics = answer.read().decode()
        return float(re.search(r"^vllm:generation_tokens_total\{.*\} (\S+)$", metrics, re.M)[1])


class Flashrig:
    name = "flashrig ttft"

    def __init__(self, args):
        self.program = args.flashrig

    def version(self):
        told = subprocess.run([self.program, "--version"], capture_output=True, text=True)
        return told.stdout.split()[-1]

    def command(self, load, folder):
        return [
            self.program, "ttft", "--server", load.url, "--model", MODEL,
            "--agents", str(load.streams), "--rounds", str(load.waves),
            "--prompt", str(PROMPT_TOKENS), "--answer-tokens", str(load.answer_tokens),
            "--results", str(folder / "results"),
        ]  # fmt: skip

    def env(self, _folder):
        return {}


class Peer:
    """A peer in an environment of its own, set to do as little beside the load as it can."""

    def __init__(self, args):
        self.home = args.peers / self.program
        self.path = self.home / "bin" / self.program

    def version(self):
        if not self.path.exists():
            raise Failed("not installed")
        places = [str(place) for place in self.home.glob("lib/python*/site-packages")]
        found = metadata.distributions(name=self.program, path=places)
        return next(found).version

    def env(self, folder):
        return {"HF_HOME": str(folder), "HF_HUB_DISABLE_TELEMETRY": "1"}


class AiPerf(Peer):
    name = "AIPerf"
    program = "aiperf"

    def command(self, load, folder):
        prompts = folder / "prompts.jsonl"
        write_lines(prompts, ({"text": text} for text in load.prompts()))
        return [
            self.path, "profile", "--model-names", MODEL, "--url", load.url,
            "--endpoint-type", "chat", "--streaming",
            "--concurrency", str(load.streams), "--request-count", str(load.requests),
            "--input-file", prompts, "--custom-dataset-type", "single_turn",
            "--extra-inputs", f"max_tokens:{load.answer_tokens}", "--extra-inputs", "ignore_eos:true",
            # No tokenising of answers; it loads a tokenizer all the same.
            "--use-server-token-count", "--tokenizer", write_tokenizer(folder),
            "--no-server-metrics", "--no-gpu-telemetry", "--ui", "none",
            "--export-level", "summary", "--artifact-dir", folder / "artifacts",
        ]  # fmt: skip


class GuideLlm(Peer):
    """With as many worker processes as it starts by itself (a stream each, at most ten), or as told."""

    program = "guidellm"

    def __init__(self, args, workers=None):
        super().__init__(args)
        self.workers = workers
        self.name = f"GuideLLM ({workers} workers)" if workers else "GuideLLM"

    def env(self, folder):
        few = {"GUIDELLM__MAX_WORKER_PROCESSES": str(self.workers)} if self.workers else {}
        return {**super().env(folder), **few}

    def command(self, load, folder):
        prompts = folder / "prompts.jsonl"
        lines = ({"prompt": text, "output_tokens_count": load.answer_tokens} for text in load.prompts())
        write_lines(prompts, lines)
        backend = {"kind": "openai_http", "target": load.url, "model": MODEL}
        # Requests carry ignore_eos by themselves when the length of the answer is given.
        return [
            self.path, "run",
            "--backend", json.dumps(backend),
            "--profile", json.dumps({"kind": "concurrent", "streams": [load.streams]}),
            "--constraint", json.dumps({"kind": "max_requests", "count": load.requests}),
            "--data", json.dumps({"kind": "json_file", "path": str(prompts)}),
            "--tokenizer", json.dumps({"kind": "huggingface_auto", "model": str(write_tokenizer(folder))}),
            "--metrics", json.dumps({"kind": "generative", "sample_size": 0}),
            "--output", json.dumps({"kind": "json", "path": str(folder / "out.json")}),
            "--disable-console-interactive",
        ]  # fmt: skip


class Load:
    """What one client is to do in one run."""

    def __init__(self, url, streams, waves, answer_tokens):
        self.url, self.streams, self.waves = url, streams, waves
        self.answer_tokens = answer_tokens
        self.requests = streams * waves

    def prompts(self):
        for number in range(self.requests):
            text = f"Prompt {number}: " + FILLER * (PROMPT_BYTES // len(FILLER) + 1)
            yield text[: PROMPT_BYTES]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_tokenizer(folder):
    """A tokenizer of a few words, so that none has to be fetched from a hub."""
    home = folder / "tokenizer"
    home.mkdir()
    words = ["[UNK]", "[EOS]", *sorted(set(FILLER.split()))]
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "[UNK]",
        },
    }
    (home / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "eos_token": "[EOS]"}
    (home / "tokenizer_config.json").write_text(json.dumps(config))
    return home


def run(client, server, args, streams, waves):
    """One run: CPU seconds of the client, tokens that the server sent it."""
    load = Load(server.url, streams, waves, args.answer_tokens)
    folder = Path(tempfile.mkdtemp(prefix=f"{client.name.split()[0]}-", dir=args.scratch))
    log = folder / "output.log"
    # In the folder, as some write files where they are.
    env = {**os.environ, **client.env(folder)}
    before = server.tokens()
    print(f"{client.name}: {load.requests} requests, {streams} at once", file=sys.stderr)
    try:
        cpu_s = measure([str(word) for word in client.command(load, folder)], log, folder, env)
    except Failed as failure:
        if log.exists():
            print(log.read_text(errors="replace")[-2000:], file=sys.stderr)
        raise Failed(f"failed: {failure}") from failure
    tokens = server.tokens() - before
    asked = load.requests * args.answer_tokens
    # flashrig's calibration asks for some tokens more, in every run the same.
    if not asked <= tokens <= asked + 100:
        raise Failed(f"failed: {tokens:.0f} tokens were sent for {asked} asked")
    return cpu_s, tokens


def compare(clients, server, args, streams):
    """Rows of the table for so many streams."""
    runs = {client.name: [] for client in clients}
    failed = {}
    for waves in (1, args.waves):
        for client in clients:
            try:
                client.version()
                if client.name not in failed:
                    runs[client.name].append(run(client, server, args, streams, waves))
            except Failed as failure:
                failed[client.name] = str(failure)
    own_us = None
    for client in clients:
        if client.name in failed:
            yield f"| {streams} | {client.name} | | | | | {failed[client.name]} |"
            continue
        (short_s, short), (long_s, long) = runs[client.name]
        per_token_us = (long_s - short_s) / (long - short) * 1e6
        once_s = short_s - per_token_us * short / 1e6
        if isinstance(client, Flashrig):
            own_us = per_token_us
        ratio = f"{per_token_us / own_us:.1f}" if own_us else ""
        yield (
            f"| {streams} | {client.name} {client.version()} | {short:,.0f} / {long:,.0f}"
            f" | {short_s:.2f} / {long_s:.2f} | {once_s:.2f} | {per_token_us:.1f}"
            f" | {ratio} |"
        )


def numbers(text):
    """A list of numbers, as an option has it."""
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--flashrig", default=root / "target/release/flashrig", help="the program, released")
    parser.add_argument("--peers", type=Path, required=True, help="folder of the peers' environments")
    parser.add_argument("--streams", type=numbers, default="32,100", help="requests at once, a list (32,100)")
    parser.add_argument("--answer-tokens", type=int, default=128, help="tokens of each answer (128)")
    parser.add_argument("--waves", type=int, default=8, help="requests per stream in the long run (8)")
    parser.add_argument("--keep", action="store_true", help="keep the folder of what clients wrote")
    args = parser.parse_args()
    args.flashrig = Path(args.flashrig).resolve()
    if args.waves < 2:
        parser.error("--waves must be at least 2: the slope needs two lengths")
    if not args.flashrig.exists():
        parser.error(f"{args.flashrig} does not exist: cargo build --release")
    # Ten processes that import PyTorch are so much start-up that its noise shows in the slope.
    clients = [Flashrig(args), AiPerf(args), GuideLlm(args), GuideLlm(args, os.cpu_count())]
    args.scratch = tempfile.mkdtemp(prefix="flashrig-peers-")
    try:
        with Server(args.flashrig) as server:
            print(HEAD, flush=True)
            for streams in args.streams:
                for row in compare(clients, server, args, streams):
                    print(row, flush=True)
    finally:
        if not args.keep:
            shutil.rmtree(args.scratch)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
