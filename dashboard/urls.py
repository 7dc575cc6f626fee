"""Addresses of the dashboard, of sign-in and of the language switch."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path
from django.views.i18n import set_language

from dashboard.views import (
    agents,
    archives,
    assets,
    audit,
    bulk,
    decisions,
    inbox,
    live,
    new_work,
    overview,
    projects,
    replay,
    search,
    tasks,
)
from dashboard.views.sign_in import SignIn

pages: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("search/", search.search, name="search"),
    path("changes/", live.changes, name="changes"),
    path("new/", new_work.new_work, name="new_work"),
    path("new/preview/", new_work.new_work_preview, name="new_work_preview"),
    # Inbox
    path("inbox/", inbox.inbox, name="inbox"),
    path("inbox/history/", inbox.inbox_history, name="inbox_history"),
    path("inbox/count/", inbox.inbox_count, name="inbox_count"),
    path("inbox/clear/", inbox.inbox_clear, name="inbox_clear"),
    path("inbox/together/", bulk.bulk, name="bulk"),
    path("inbox/<int:pk>/", decisions.decision, name="decision"),
    path("inbox/<int:pk>/row/", inbox.decision_row, name="decision_row"),
    path("inbox/<int:pk>/pane/", inbox.decision_pane, name="decision_pane"),
    path("inbox/<int:pk>/dock/", decisions.decision_dock, name="decision_dock"),
    path("inbox/<int:pk>/parts/<slug:name>/", decisions.decision_part, name="decision_part"),
    path("inbox/<int:pk>/seen/", inbox.decision_seen, name="decision_seen"),
    path("inbox/<int:pk>/draft/", decisions.decision_draft, name="decision_draft"),
    path("inbox/<int:pk>/decide/", decisions.decide, name="decide"),
    # Agents
    path("agents/", agents.agents, name="agents"),
    path("agents/<str:name>/", agents.agent, name="agent"),
    # Projects
    path("projects/", projects.projects, name="projects"),
    path("projects/<slug:slug>/", projects.board, name="board"),
    path("projects/<slug:slug>/head/", projects.board_head, name="board_head"),
    path("projects/<slug:slug>/pipeline/", projects.pipeline, name="pipeline"),
    path("projects/<slug:slug>/master/", projects.master, name="master"),
    path("projects/<slug:slug>/replay/", replay.replay, name="replay"),
    path("projects/<slug:slug>/log/", live.log, name="log"),
    path("projects/<slug:slug>/log.txt", live.log_file, name="log_file"),
    path("projects/<slug:slug>/pause/", projects.pause, name="pause"),
    path("projects/<slug:slug>/resume/", projects.resume, name="resume"),
    path("projects/<slug:slug>/tasks/<int:pk>/", tasks.task, name="task"),
    path("projects/<slug:slug>/tasks/<int:pk>/row/", projects.master_row, name="master_row"),
    path("projects/<slug:slug>/tasks/<int:pk>/node/", projects.node, name="node"),
    path("projects/<slug:slug>/tasks/<int:pk>/graph/", projects.graph, name="graph"),
    path("projects/<slug:slug>/tasks/<int:pk>/timeline/", projects.timeline, name="timeline"),
    path("projects/<slug:slug>/tasks/<int:pk>/risks/", projects.risks, name="risks"),
    path(
        "projects/<slug:slug>/tasks/<int:pk>/phases/<int:phase>/", projects.band, name="band"
    ),
    path("projects/<slug:slug>/tasks/<int:pk>/parts/<slug:name>/", tasks.task_part,
         name="task_part"),
    path("projects/<slug:slug>/tasks/<int:pk>/replan/", tasks.replan, name="replan"),
    path("projects/<slug:slug>/tasks/<int:pk>/comment/", tasks.comment, name="comment"),
    path("projects/<slug:slug>/tasks/<int:pk>/cancel/", tasks.cancel, name="cancel"),
    path("projects/<slug:slug>/tasks/<int:pk>/archive.<slug:kind>", archives.archive,
         name="archive"),
    path("projects/<slug:slug>/assignments/<int:pk>/", tasks.assignment, name="assignment"),
    path("projects/<slug:slug>/artifacts/<int:pk>/", tasks.artifact, name="artifact"),
    # Audit
    path("audit/", audit.audit, name="audit"),
    path("audit/verify/", audit.audit_verify, name="audit_verify"),
    path("audit/export/", audit.audit_export, name="audit_export"),
]  # fmt: skip
urlpatterns: list[URLPattern | URLResolver] = [
    path("", include((pages, "dashboard"))),
    path("favicon.ico", assets.favicon, name="favicon"),
    path("accounts/login/", SignIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("i18n/setlang/", set_language, name="set_language"),
]
