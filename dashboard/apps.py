"""Register the dashboard with Django."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Pages, fragments and the live socket."""

    name = "dashboard"
    verbose_name = "Dashboard"
