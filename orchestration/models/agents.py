"""Who acts: agents with a token, and personal tokens of humans."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from orchestration.models.projects import Project


class Agent(models.Model):
    """An identity that works over REST. The token is shown once and stored hashed.

    `folded_name` keeps two names apart that differ in case only; neither database folds every
    script, so it is written with the name.
    """

    name = models.CharField(max_length=120, unique=True)
    folded_name = models.CharField(max_length=360, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    projects = models.ManyToManyField(Project, blank=True, related_name="agents")
    token_hash = models.CharField(max_length=64, unique=True)
    token_hint = models.CharField(max_length=12)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """By name."""

        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def is_authenticated(self) -> bool:
        """DRF asks this of whoever a token stands for."""
        return self.revoked_at is None


class HumanToken(models.Model):
    """A personal token of a human; it decides only when made with `can_decide`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens"
    )
    token_hash = models.CharField(max_length=64, unique=True)
    token_hint = models.CharField(max_length=12)
    can_decide = models.BooleanField(default=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Newest last."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.user_id}:{self.token_hint}"


class IdempotencyRecord(models.Model):
    """The stored answer of a POST, so that a repeat of key and body gets the same."""

    actor = models.CharField(max_length=140)
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    body = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        """One answer a key and actor."""

        constraints = (
            models.UniqueConstraint(fields=("actor", "key"), name="idempotency_key_unique"),
        )

    def __str__(self) -> str:
        return self.key
