# Generated from sdk/operations.json by sdk/generate; do not edit.

__version__ = "0.1.0"
SERVICE_VERSION = "2026-11-01"
