"""Deployment of Countersign: settings, routes, the Celery application and the one-process mode."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
