"""Manifests from files, read exactly as kubectl reads them."""

from fivespot.adapters.files.documents import Document, FileProblem, read_documents

__all__ = ["Document", "FileProblem", "read_documents"]
