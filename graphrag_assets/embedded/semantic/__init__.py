"""Embedding models that run in this process: sentence-transformers models exported to ONNX, without torch.

`export` reads a model's folder, `encoder` makes vectors. Importing this package loads neither onnxruntime nor
tokenizers; both come with the extra `semantic`.
"""

from graphrag_assets.embedded.semantic.encoder import Encoder, encoder_of, encoder_of_index
from graphrag_assets.embedded.semantic.export import PACKAGED, Export, read_export

__all__ = ["PACKAGED", "Encoder", "Export", "encoder_of", "encoder_of_index", "read_export"]
