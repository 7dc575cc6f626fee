"""The API's routes, as DESIGN section 14 writes them. All else below `/api/` is a problem."""

from __future__ import annotations

from django.http import Http404
from django.urls import URLPattern, re_path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api import (
    archives,
    artifacts,
    assignments,
    audit,
    blackboard,
    decisions,
    docs,
    hooks,
    insights,
    integrity,
    knowledge,
    locked_defects,
    mail,
    projects,
    prompts,
    shared_documents,
    validation,
    workflows,
)
from orchestration.api import tasks as task_views
from orchestration.api.base import ApiView
from orchestration.api.routing import route


class NothingHere(ApiView):
    """Answer for addresses that the API does not have, in the API's own shape."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Refuse, whatever the method. Errors: Http404."""
        raise Http404

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        """Never reached: `initial` refuses."""
        raise Http404


PROJECT = "projects/<str:pid>"
TASK = f"{PROJECT}/tasks/<str:task>"
SHARED = f"{TASK}/shared/<str:name>"
ASSIGNMENT = "assignments/<str:assignment>"
DECISION = "decisions/<str:decision>"
EXPERIENCE = f"{PROJECT}/experiences/<str:experience>"
ARTIFACT_DEFECTS = f"{PROJECT}/artifacts/<str:artifact>/defects"
PAGE = f"{PROJECT}/wiki/<str:page>"

urlpatterns: list[URLPattern] = [
    route("projects/", projects.ProjectsView, "api-projects"),
    route(f"{PROJECT}/", projects.ProjectView, "api-project"),
    route(f"{PROJECT}/pause", projects.PauseView, "api-project-pause"),
    route(f"{PROJECT}/resume", projects.ResumeView, "api-project-resume"),
    route(f"{PROJECT}/archive", projects.ArchiveProjectView, "api-project-archive"),
    route(f"{PROJECT}/messages", task_views.MessagesView, "api-messages"),
    route(f"{PROJECT}/tasks", task_views.TasksView, "api-tasks"),
    route(f"{PROJECT}/tasks/import", task_views.ImportView, "api-tasks-import"),
    route(TASK, task_views.TaskView, "api-task"),
    route(f"{TASK}/claim", blackboard.ClaimTaskView, "api-task-claim"),
    route(f"{TASK}/heartbeat", blackboard.HeartbeatTaskView, "api-task-heartbeat"),
    route(f"{TASK}/release", blackboard.ReleaseTaskView, "api-task-release"),
    route(f"{TASK}/status", blackboard.StatusView, "api-task-status"),
    route(f"{TASK}/outputs", blackboard.OutputsView, "api-task-outputs"),
    route(f"{TASK}/comments", blackboard.CommentsView, "api-task-comments"),
    route(f"{TASK}/progress", blackboard.ProgressView, "api-task-progress"),
    route(f"{TASK}/spawn", blackboard.SpawnView, "api-task-spawn"),
    route(f"{TASK}/deviations", blackboard.DeviationsView, "api-task-deviations"),
    route(f"{TASK}/cancel", blackboard.CancelView, "api-task-cancel"),
    route(f"{TASK}/replan", blackboard.ReplanView, "api-task-replan"),
    route(f"{TASK}/validation", validation.ValidationView, "api-validation"),
    route(
        f"{TASK}/validation/<str:package>/validation_package.md",
        validation.PackageTextView,
        "api-validation-package",
    ),
    route(f"{PROJECT}/control-commands", validation.ControlCommandsView, "api-control-commands"),
    route(f"{TASK}/shared", shared_documents.SharedDocumentsView, "api-shared-documents"),
    route(f"{SHARED}", shared_documents.SharedDocumentView, "api-shared-document"),
    route(f"{SHARED}/versions", shared_documents.SharedVersionsView, "api-shared-versions"),
    route(f"{TASK}/archive", archives.ArchiveView, "api-task-archive"),
    route(f"{TASK}/bootstrap", prompts.BootstrapView, "api-task-bootstrap"),
    route(f"{TASK}/questions", workflows.QuestionsView, "api-task-questions"),
    route(f"{TASK}/documents.zip", workflows.DocumentsView, "api-task-documents"),
    route(f"{PROJECT}/workflows", workflows.WorkflowsView, "api-workflow-runs"),
    route("workflows", workflows.WorkflowListView, "api-workflows"),
    route(f"{PROJECT}/experiences", knowledge.ExperiencesView, "api-experiences"),
    route(EXPERIENCE, knowledge.ExperienceView, "api-experience"),
    route(f"{EXPERIENCE}/review", knowledge.ExperienceReviewView, "api-experience-review"),
    route(f"{PROJECT}/wiki", knowledge.WikiView, "api-wiki"),
    route(PAGE, knowledge.PageView, "api-wiki-page"),
    route(f"{PAGE}/versions", knowledge.VersionsView, "api-wiki-versions"),
    route(f"{PAGE}/review", knowledge.PageReviewView, "api-wiki-review"),
    route(f"{PROJECT}/events", audit.EventsView, "api-events"),
    route(f"{PROJECT}/audit", audit.AuditView, "api-audit"),
    route(f"{PROJECT}/audit/verify", audit.VerifyView, "api-audit-verify"),
    route(f"{PROJECT}/insights", insights.InsightsView, "api-insights"),
    route(f"{PROJECT}/integrity", integrity.IntegrityView, "api-integrity"),
    route(f"{PROJECT}/artifacts", artifacts.ArtifactsView, "api-artifacts"),
    route(ARTIFACT_DEFECTS, locked_defects.LockedDefectsView, "api-artifact-defects"),
    route("artifacts/<str:artifact>/content", artifacts.ArtifactContentView, "api-artifact"),
    route("assignments/claim", assignments.ClaimView, "api-claim"),
    route(f"{ASSIGNMENT}/heartbeat", assignments.HeartbeatView, "api-heartbeat"),
    route(f"{ASSIGNMENT}/result", assignments.ResultView, "api-result"),
    route(f"{ASSIGNMENT}/release", assignments.ReleaseView, "api-release"),
    route(f"{ASSIGNMENT}/tool-calls", assignments.ToolCallsView, "api-tool-calls"),
    route(f"{ASSIGNMENT}/codex-events", hooks.CodexEventsView, "api-codex-events"),
    route("hooks/claude-code", hooks.ClaudeCodeView, "api-claude-code"),
    route(f"{ASSIGNMENT}/log", assignments.LogView, "api-log"),
    route("mail/", mail.MailView, "api-mail"),
    route("mail/read", mail.MailReadView, "api-mail-read"),
    route("decisions/", decisions.DecisionsView, "api-decisions"),
    route("decisions/bulk", decisions.BulkView, "api-decisions-bulk"),
    route(f"{DECISION}/", decisions.DecisionDetailView, "api-decision"),
    route(f"{DECISION}/decide", decisions.DecideView, "api-decide"),
    route(f"{DECISION}/seen", decisions.SeenView, "api-seen"),
    route(f"{DECISION}/draft", decisions.DraftView, "api-draft"),
    route("schema/", docs.SchemaView, "api-schema"),
    route("docs/", docs.DocsView, "api-docs"),
    re_path(r"", NothingHere.as_view(), name="api-nothing"),
]
