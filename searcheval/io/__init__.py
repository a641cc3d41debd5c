"""Reading and writing queries, documents, qrels and runs in the formats that people have."""

from searcheval.io.files import Path_, atomic, read_json, reading, write_text
from searcheval.io.readers import (
    kind_of,
    line_of_judgment,
    read_documents,
    read_qrels,
    read_queries,
    read_run,
)
from searcheval.io.writers import write_documents, write_qrels, write_queries, write_run

__all__ = [
    "Path_",
    "atomic",
    "kind_of",
    "line_of_judgment",
    "read_documents",
    "read_json",
    "read_qrels",
    "read_queries",
    "read_run",
    "reading",
    "write_documents",
    "write_qrels",
    "write_queries",
    "write_run",
    "write_text",
]
