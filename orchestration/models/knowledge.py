"""What is known beyond one task: experiences, wiki pages with every version, and their index.

The index is a table of ours, so that Chinese and English are found alike on both databases.
"""

from __future__ import annotations

from django.db import models

from orchestration.models.agents import Agent
from orchestration.models.fields import known_state, state_field
from orchestration.models.projects import Project
from orchestration.models.tasks import Task
from orchestration.states import ExperienceKind, KnowledgeStatus


class Experience(models.Model):
    """One experience: what was learned in one piece of work, for whoever does such work next.

    Shape: `digest` names what the system wrote by itself, so that it is written once.
    """

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="experiences", db_index=False
    )
    task = models.ForeignKey(
        Task, null=True, blank=True, on_delete=models.SET_NULL, related_name="experiences"
    )
    kind = state_field(ExperienceKind, ExperienceKind.NOTE)
    title = models.CharField(max_length=300)
    body = models.TextField(blank=True, default="")
    digest = models.CharField(max_length=64, blank=True, default="")
    author = models.CharField(max_length=140)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    status = state_field(KnowledgeStatus, KnowledgeStatus.UNREVIEWED)
    reviewed_by = models.CharField(max_length=140, blank=True, default="")
    reviewed_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()

    class Meta:
        """Oldest first."""

        ordering = ("pk",)
        constraints = (
            known_state(KnowledgeStatus, "experience_status_known"),
            models.UniqueConstraint(
                fields=("project", "digest"),
                condition=~models.Q(digest=""),
                name="experience_digest_unique",
            ),
        )
        indexes = (models.Index(fields=("project", "status", "id"), name="experience_list_idx"),)

    def __str__(self) -> str:
        return self.title


class WikiPage(models.Model):
    """The newest version of one page. An edit by an agent makes it unreviewed again."""

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="wiki_pages", db_index=False
    )
    name = models.CharField(max_length=200)
    title = models.CharField(max_length=300)
    summary = models.TextField(blank=True, default="")
    body = models.TextField(blank=True, default="")
    author = models.CharField(max_length=140)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    status = state_field(KnowledgeStatus, KnowledgeStatus.UNREVIEWED)
    reviewed_by = models.CharField(max_length=140, blank=True, default="")
    reviewed_at = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        """One page a name."""

        ordering = ("pk",)
        constraints = (
            known_state(KnowledgeStatus, "wiki_page_status_known"),
            models.UniqueConstraint(fields=("project", "name"), name="wiki_page_name_unique"),
        )

    def __str__(self) -> str:
        return self.name


class WikiVersion(models.Model):
    """One version of a page as it was written, and by whom."""

    page = models.ForeignKey(
        WikiPage, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=300)
    summary = models.TextField(blank=True, default="")
    body = models.TextField(blank=True, default="")
    author = models.CharField(max_length=140)
    created_at = models.DateTimeField()

    class Meta:
        """One row a version."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("page", "number"), name="wiki_version_unique"),
        )

    def __str__(self) -> str:
        return f"{self.page_id} v{self.number}"


class KnowledgeTerm(models.Model):
    """A term that finds one experience or one page. Shape: `weight` 1 to 20."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    experience = models.ForeignKey(
        Experience, null=True, blank=True, on_delete=models.CASCADE, related_name="terms"
    )
    page = models.ForeignKey(
        WikiPage, null=True, blank=True, on_delete=models.CASCADE, related_name="terms"
    )
    term = models.CharField(max_length=40)
    weight = models.PositiveSmallIntegerField()

    class Meta:
        """Partial indexes that hold all a search reads, so that it never touches the rows."""

        ordering = ("pk",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(experience__isnull=False, page__isnull=True)
                | models.Q(experience__isnull=True, page__isnull=False),
                name="term_finds_one_thing",
            ),
        )
        indexes = (
            models.Index(
                fields=("project", "term", "experience", "weight"),
                condition=models.Q(experience__isnull=False),
                name="term_experience_idx",
            ),
            models.Index(
                fields=("project", "term", "page", "weight"),
                condition=models.Q(page__isnull=False),
                name="term_page_idx",
            ),
        )

    def __str__(self) -> str:
        return self.term
