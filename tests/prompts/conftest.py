"""The API's project and callers, for prompts."""

from tests.api.conftest import _full_buckets, agent, held, outsider, project, sir, task, viewer

__all__ = ["_full_buckets", "agent", "held", "outsider", "project", "sir", "task", "viewer"]
