"""Stores: graphs in a folder of memory-mapped arrays, imported from tables in bounded memory."""

from dcgst.io.store.format import SUFFIX, is_store, open_store
from dcgst.io.store.importing import import_tables

__all__ = ["SUFFIX", "import_tables", "is_store", "open_store"]
