"""Register the engine with Django."""

from django.apps import AppConfig

from orchestration.checks import register_checks


class OrchestrationConfig(AppConfig):
    """The engine: models, rules, services, jobs and the API."""

    name = "orchestration"
    verbose_name = "Countersign"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Add our system checks."""
        register_checks()
