"""Rows of the method. Fields, constraints and indexes live here; rules do not."""

from orchestration.models.agents import Agent, HumanToken, IdempotencyRecord
from orchestration.models.archives import ChangelogEntry, DeliveryArchive, StaleConsumer
from orchestration.models.artifacts import Artifact, ArtifactContent, ArtifactRead
from orchestration.models.assignments import Assignment, LogChunk, ToolCall
from orchestration.models.audit import AuditEvent, AuditSeal, Canary
from orchestration.models.decisions import Decision, DecisionView
from orchestration.models.flows import WorkflowDocument, WorkflowRun
from orchestration.models.held import HeldResult
from orchestration.models.knowledge import Experience, KnowledgeTerm, WikiPage, WikiVersion
from orchestration.models.lookups import OneOf
from orchestration.models.mail import (
    Conversation,
    Handshake,
    Mail,
    MailRecipient,
    SharedDocument,
    SharedDocumentVersion,
)
from orchestration.models.notifications import Delivery, Notice, NoticeRead, NotificationChannel
from orchestration.models.outputs import Output, Verification
from orchestration.models.plans import AuditReport, Blueprint, Deviation, Plan
from orchestration.models.projects import Project
from orchestration.models.reviews import Defect, QAReview
from orchestration.models.tasks import Assessment, Comment, Task, TaskDependency
from orchestration.models.validation import ControlCommand, ValidationPackage

__all__ = [
    "Agent",
    "Artifact",
    "ArtifactContent",
    "ArtifactRead",
    "Assessment",
    "Assignment",
    "AuditEvent",
    "AuditReport",
    "AuditSeal",
    "Blueprint",
    "Canary",
    "ChangelogEntry",
    "Comment",
    "ControlCommand",
    "Conversation",
    "Decision",
    "DecisionView",
    "Defect",
    "Delivery",
    "DeliveryArchive",
    "Deviation",
    "Experience",
    "Handshake",
    "HeldResult",
    "HumanToken",
    "IdempotencyRecord",
    "KnowledgeTerm",
    "LogChunk",
    "Mail",
    "MailRecipient",
    "Notice",
    "NoticeRead",
    "NotificationChannel",
    "OneOf",
    "Output",
    "Plan",
    "Project",
    "QAReview",
    "SharedDocument",
    "SharedDocumentVersion",
    "StaleConsumer",
    "Task",
    "TaskDependency",
    "ToolCall",
    "ValidationPackage",
    "Verification",
    "WikiPage",
    "WikiVersion",
    "WorkflowDocument",
    "WorkflowRun",
]
