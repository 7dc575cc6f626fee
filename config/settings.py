"""The only settings, grouped by concern. Every deploy-time value comes through `env`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy
from kombu.entity import Queue

from config import env, memory_broker

# --- Places -----------------------------------------------------------------------------------

BASE_DIR = Path(__file__).resolve().parent.parent
COUNTERSIGN_DATA_DIR = env.prepare_data_dir(env.read_path("COUNTERSIGN_DATA_DIR", BASE_DIR / "var"))
COUNTERSIGN_WORKSPACE_ROOTS = env.read_paths(
    "COUNTERSIGN_WORKSPACE_ROOTS", (COUNTERSIGN_DATA_DIR / "workspaces",)
)
HOST = env.read_text("HOST", "127.0.0.1")
PORT = env.read_int("PORT", 8000, low=0, high=65535)

# --- Product ----------------------------------------------------------------------------------

SIR_USERNAME = env.read_text("SIR_USERNAME", "sir")
SIR_PASSWORD = env.read_text("SIR_PASSWORD")
COUNTERSIGN_DEMO = env.read_bool("COUNTERSIGN_DEMO", default=True)
COUNTERSIGN_UNSANDBOXED = env.read_bool("COUNTERSIGN_UNSANDBOXED", default=False)
# Which sandbox code of agents runs in: the first that holds, a named one, or none.
COUNTERSIGN_SANDBOX = env.read_choice(
    "COUNTERSIGN_SANDBOX", "auto", choices=("auto", "none", "bubblewrap", "uid", "landlock")
)
# More directories that code in the sandbox may read: toolchains outside the system's own places.
COUNTERSIGN_SANDBOX_READ = env.read_paths("COUNTERSIGN_SANDBOX_READ", ())
# Dotted classes of seat backends beside the built-in ones, in the order they are asked.
COUNTERSIGN_EXTRA_SEATS = env.read_list("COUNTERSIGN_EXTRA_SEATS")
# Threads that work on assignments, in `serve` and in each `worker`.
COUNTERSIGN_CONCURRENCY = env.read_int("COUNTERSIGN_CONCURRENCY", 10, low=1, high=256)

# --- Notifications ----------------------------------------------------------------------------

# The address of this installation as people reach it, for the links in what is sent.
COUNTERSIGN_URL = env.read_url("COUNTERSIGN_URL", f"http://{HOST}:{PORT}")
# Whether webhooks and notification services may stand on this machine or a private network.
COUNTERSIGN_NOTIFY_PRIVATE = env.read_bool("COUNTERSIGN_NOTIFY_PRIVATE", default=False)
# Whether they may be spoken to without TLS.
COUNTERSIGN_NOTIFY_HTTP = env.read_bool("COUNTERSIGN_NOTIFY_HTTP", default=False)
# E-mail goes out through this server; without a host there is no e-mail.
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = env.read_text("EMAIL_HOST").strip()
EMAIL_PORT = env.read_int("EMAIL_PORT", 25, low=1, high=65535)
EMAIL_HOST_USER = env.read_text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.read_text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env.read_bool("EMAIL_USE_TLS", default=False)
EMAIL_USE_SSL = env.read_bool("EMAIL_USE_SSL", default=False)
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise env.BadEnvironment("EMAIL_USE_SSL", "set either EMAIL_USE_TLS or EMAIL_USE_SSL, not both")
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.read_text("EMAIL_FROM", "countersign@localhost").strip()

# --- Safety -----------------------------------------------------------------------------------

DEBUG = env.read_bool("DEBUG", default=False)
SECRET_KEY = env.read_secret_key(COUNTERSIGN_DATA_DIR)
# Keys from before: what they signed and sealed can still be read.
SECRET_KEY_FALLBACKS = list(env.read_list("SECRET_KEY_FALLBACKS"))
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
ALLOWED_HOSTS = list(env.read_list("ALLOWED_HOSTS", LOCAL_HOSTS))
CSRF_TRUSTED_ORIGINS = list(env.read_list("CSRF_TRUSTED_ORIGINS"))
# Set it where a proxy in front speaks TLS: secure cookies, redirect, HSTS.
COUNTERSIGN_HTTPS = env.read_bool("COUNTERSIGN_HTTPS", default=False)

SESSION_COOKIE_NAME = "countersign_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = COUNTERSIGN_HTTPS
CSRF_COOKIE_NAME = "countersign_csrf"
CSRF_COOKIE_HTTPONLY = True  # htmx takes the token from <body>, no script needs the cookie
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = COUNTERSIGN_HTTPS
SECURE_SSL_REDIRECT = COUNTERSIGN_HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
SECURE_HSTS_SECONDS = 31_536_000 if COUNTERSIGN_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = COUNTERSIGN_HTTPS
SECURE_HSTS_PRELOAD = COUNTERSIGN_HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# A plan may be 8 MB (DESIGN section 7) and a JSON body carries a little around it.
DATA_UPLOAD_MAX_MEMORY_SIZE = 9 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_PERMISSIONS = 0o600
# The largest request body the ASGI door lets in: a 50 MB file and its multipart frame.
COUNTERSIGN_MAX_BODY_BYTES = 52 * 1024 * 1024

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"

# --- Application ------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "django_htmx",
    "template_partials.apps.SimpleAppConfig",
    "orchestration",
    "dashboard",
]
MIDDLEWARE = [
    "config.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.SecurityHeadersMiddleware",
    "config.static_files.StaticFilesMiddleware",
    "config.middleware.PageCompressionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

FILE_LOADERS = [
    "django.template.loaders.filesystem.Loader",
    "django.template.loaders.app_directories.Loader",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.context.navigation",
            ],
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    FILE_LOADERS
                    if DEBUG
                    else [("django.template.loaders.cached.Loader", FILE_LOADERS)],
                )
            ],
        },
    }
]

# --- Database ---------------------------------------------------------------------------------

SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; "
    "PRAGMA cache_size=-8000; PRAGMA busy_timeout=20000"
)


# Requests that work at the same time in one process, and the connections of its PostgreSQL pool.
COUNTERSIGN_POOL_SIZE = env.read_int("COUNTERSIGN_POOL_SIZE", 20, low=2, high=500)


def _databases() -> dict[str, dict[str, Any]]:
    postgres = env.read_postgres()
    if postgres is None:
        return {
            "default": {
                "ENGINE": "config.sqlite",
                "NAME": str(COUNTERSIGN_DATA_DIR / "countersign.sqlite3"),
                "OPTIONS": {
                    "transaction_mode": "IMMEDIATE",
                    "timeout": 20,
                    "init_command": SQLITE_PRAGMAS,
                },
                # A connection costs a reading of the whole schema; each thread keeps its own.
                "CONN_MAX_AGE": None,
            }
        }
    keys = dict(postgres)
    query = keys.pop("query")
    pool = {"min_size": 1, "max_size": COUNTERSIGN_POOL_SIZE, "timeout": 10}
    return {
        "default": {
            "ENGINE": "config.postgres",
            **keys,
            "OPTIONS": {
                "connect_timeout": 5,
                # A statement's second run on a connection is a prepared one: planning our widest
                # reads costs PostgreSQL more than running them.
                "server_side_binding": True,
                "prepare_threshold": 1,
                **query,
                "pool": pool,
            },
            "CONN_MAX_AGE": 0,
        }
    }


DATABASES = _databases()

# --- Messages: wake-ups and hints, never facts ------------------------------------------------

REDIS_URL = env.read_redis_url()
# Pub/sub keeps its groups in the process and subscribes again after a Redis restart.
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "countersign"},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}
# Throttles count per process: a dead Redis must not turn every request into an error.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

CELERY_BROKER_URL = REDIS_URL or memory_broker.URL
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {
        # An unacknowledged wake-up comes back after an hour; the sweep does not wait for that.
        "visibility_timeout": 3600,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        # Whoever just committed does not wait for a broker that is down (kombu's own steps: 6 s).
        "max_retries": 0,
    }
    if REDIS_URL
    else {}
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker waits for its broker for ever
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1}
CELERY_TASK_DEFAULT_QUEUE = "agents"
CELERY_TASK_QUEUES = (Queue("control"), Queue("agents"))
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_ROUTES = {
    f"orchestration.jobs.{name}": {"queue": "control"}
    for name in ("sweep_job", "seal_job", "canary_job", "notify_job")
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_RESULT_BACKEND = None
CELERY_RESULT_EXPIRES = None
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_CONSUMER = "config.workers:PromptConsumer"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BEAT_MAX_LOOP_INTERVAL = 1

# --- API --------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "orchestration.api.auth.AgentTokenAuthentication",
        "orchestration.api.auth.HumanTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["orchestration.api.throttles.TokenThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "rest_framework.parsers.JSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "orchestration.api.errors.problem_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    # The address is the peer's; uvicorn already took it from a trusted proxy's header.
    "NUM_PROXIES": 0,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Countersign",
    "DESCRIPTION": "The control plane for agents that work under a strict method.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    # The contracts say null the way JSON Schema does, which OpenAPI 3.0 cannot.
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "orchestration.api.schema.add_common_refusals",
    ],
}

# --- Words, time, files -----------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", gettext_lazy("English")), ("zh-hans", gettext_lazy("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = COUNTERSIGN_DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = COUNTERSIGN_DATA_DIR / "media"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG

# --- Log --------------------------------------------------------------------------------------

LOG_LEVEL = env.read_choice(
    "LOG_LEVEL", "WARNING", choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
)
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "config.logs.RequestIdFilter"}},
    "formatters": {"line": {"()": "config.logs.LineFormatter"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["request_id"],
            "formatter": "line",
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Django logs every 4xx as a warning; the API counts them and the page shows them.
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "ERROR"},
    },
}
