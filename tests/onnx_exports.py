"""Sentence-transformers exports small enough to compute their vectors by hand.

A token's vector is its row in a table, whatever stands around it: special tokens [CLS] (2, 0, 0) and [SEP] (0, 0, 3),
words red (1, 0, 0), green (0, 1, 0) and blue (0, 0, 1).
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "red": 3, "green": 4, "blue": 5}
TABLE = np.array([(1, 1, 1), (2, 0, 0), (0, 0, 3), (1, 0, 0), (0, 1, 0), (0, 0, 1)], np.float32)


def write_export(
    folder: Path,
    *,
    table: np.ndarray = TABLE,
    file: str = "model.onnx",
    pooling: dict | None = None,
    modules: Sequence[str] = ("Transformer", "Pooling", "Normalize"),
    prompts: dict[str, str] | None = None,
    max_tokens: int = 128,
    output: str = "last_hidden_state",
    quantized: bool = False,
    **transformer: object,
) -> Path:
    """Write an export to `folder` and return it; `pooling` is its 1_Pooling/config.json, default: the mean."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    onnx.save(_model(table, output, quantized), folder / file)
    write_tokenizer(folder / "tokenizer.json")
    size = table.shape[1]
    contents = {
        "1_Pooling/config.json": {"word_embedding_dimension": size, **(pooling or {"pooling_mode_mean_tokens": True})},
        "modules.json": [
            {"idx": place, "path": f"{place}_{name}" if place else "", "type": f"sentence_transformers.models.{name}"}
            for place, name in enumerate(modules)
        ],
        "sentence_bert_config.json": {"max_seq_length": max_tokens, **transformer},
        "config_sentence_transformers.json": {"prompts": prompts or {}, "default_prompt_name": None},
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def write_tokenizer(file: Path) -> None:
    """A tokenizer of whole words, stored with the truncation and padding that published ones often have."""
    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(file))


def _model(table: np.ndarray, output: str, quantized: bool) -> onnx.ModelProto:
    """The table as a model. `sentence_embedding`: the vector of the last token is its output.

    `quantized`: vectors are rounded to 8 bits on a scale that is that of the whole run, as dynamic quantization does.
    """
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"])]
    if quantized:
        nodes += [
            helper.make_node("DynamicQuantizeLinear", ["rows"], ["bytes", "scale", "zero"]),
            helper.make_node("DequantizeLinear", ["bytes", "scale", "zero"], ["rounded"]),
        ]
    states = "rounded" if quantized else "rows"
    is_finished = output == "sentence_embedding"
    initializers = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.int64(-1), "last")]
    nodes.append(
        helper.make_node("Gather", [states, "last"], [output], axis=1)
        if is_finished
        else helper.make_node("Identity", [states], [output])
    )
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    ]
    shape = ["batch", table.shape[1]] if is_finished else ["batch", "sequence", table.shape[1]]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "table", inputs, outputs, initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
