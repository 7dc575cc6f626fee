"""Register the engine with Django."""

from django.apps import AppConfig


class OrchestrationConfig(AppConfig):
    """The engine: models, rules, services, jobs and the API."""

    name = "orchestration"
    verbose_name = "Countersign"
    default_auto_field = "django.db.models.BigAutoField"
