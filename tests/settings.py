"""The product's settings with what tests must change: places, fast hashing, no collected files.

TEST_DATABASE_URL and TEST_REDIS_URL choose PostgreSQL and Redis instead of SQLite and memory.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

ROOT_VARIABLE = "COUNTERSIGN_TEST_ROOT"
xdist_worker = os.environ.get("PYTEST_XDIST_WORKER", "")

if ROOT_VARIABLE not in os.environ:
    # The first process makes the folder; xdist's workers inherit it through the environment.
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp(prefix="countersign-tests-")
    atexit.register(shutil.rmtree, os.environ[ROOT_VARIABLE], ignore_errors=True)

for name in (
    "ALLOWED_HOSTS",
    "COUNTERSIGN_DEMO",
    "COUNTERSIGN_EXTRA_SEATS",
    "COUNTERSIGN_HTTPS",
    "COUNTERSIGN_NOTIFY_HTTP",
    "COUNTERSIGN_NOTIFY_PRIVATE",
    "COUNTERSIGN_SANDBOX",
    "COUNTERSIGN_SANDBOX_READ",
    "COUNTERSIGN_UNSANDBOXED",
    "COUNTERSIGN_URL",
    "COUNTERSIGN_WORKSPACE_ROOTS",
    "EMAIL_FROM",
    "EMAIL_HOST",
    "EMAIL_HOST_PASSWORD",
    "EMAIL_HOST_USER",
    "EMAIL_PORT",
    "EMAIL_USE_SSL",
    "EMAIL_USE_TLS",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "HOST",
    "LOG_LEVEL",
    "PORT",
    "SIR_PASSWORD",
    "SIR_USERNAME",
):
    os.environ.pop(name, None)
os.environ["COUNTERSIGN_DATA_DIR"] = str(Path(os.environ[ROOT_VARIABLE]) / (xdist_worker or "main"))
os.environ["SECRET_KEY"] = "only-for-tests-" + "x" * 50
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")
os.environ["REDIS_URL"] = os.environ.get("TEST_REDIS_URL", "")
if os.environ["REDIS_URL"]:
    # Each xdist worker has a Redis database of its own.
    number = int(xdist_worker.removeprefix("gw") or 0) + 1
    os.environ["REDIS_URL"] = f"{os.environ['REDIS_URL'].rstrip('/')}/{number}"

from config.settings import *
from config.settings import COUNTERSIGN_DATA_DIR, DATABASES, SQLITE_PRAGMAS, STATIC_ROOT, STORAGES

COUNTERSIGN_WORKSPACE_ROOTS = (COUNTERSIGN_DATA_DIR / "workspaces",)
for folder in (*COUNTERSIGN_WORKSPACE_ROOTS, STATIC_ROOT):
    folder.mkdir(parents=True, exist_ok=True)

if DATABASES["default"]["ENGINE"] == "config.sqlite":
    # A file, since threads must share it; on a test machine nothing must survive a power cut.
    DATABASES["default"]["TEST"] = {"NAME": str(COUNTERSIGN_DATA_DIR / "test.sqlite3")}
    DATABASES["default"]["OPTIONS"]["init_command"] = SQLITE_PRAGMAS.replace("=FULL", "=OFF")

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
