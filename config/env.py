"""Read the environment with types. A bad value stops the start with one clear line.

`NAME_FILE` names a file that holds the value, for every reader; that is how secrets arrive from a
secret store without showing in a process listing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})
SECRET_KEY_BYTES = 48
POSTGRES_SCHEMES = frozenset({"postgres", "postgresql"})
REDIS_SCHEMES = frozenset({"redis", "rediss", "unix"})


class BadEnvironment(SystemExit):
    """A variable is unusable. A SystemExit, so that the start ends with one line and no trace."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"countersign: {name}: {problem}")
        self.name = name


def read_text(name: str, default: str = "") -> str:
    """Return the value of `name`, or the content of the file that `NAME_FILE` names.

    Errors: BadEnvironment when both are set or the file cannot be read.
    """
    file_name = os.environ.get(f"{name}_FILE", "")
    if not file_name:
        return os.environ.get(name, default)
    if name in os.environ:
        raise BadEnvironment(name, f"set either {name} or {name}_FILE, not both")
    try:
        return Path(file_name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadEnvironment(f"{name}_FILE", f"cannot read {file_name}: {error}") from None


def read_bool(name: str, *, default: bool) -> bool:
    """Return a yes or no. Errors: BadEnvironment for any other word."""
    word = read_text(name, "1" if default else "0").strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise BadEnvironment(name, f"expected 1 or 0, got {word!r}")


def read_int(name: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number in `low`..`high`. Errors: BadEnvironment outside it."""
    text = read_text(name, str(default)).strip()
    try:
        number = int(text)
    except ValueError:
        raise BadEnvironment(name, f"expected a whole number, got {text!r}") from None
    if not low <= number <= high:
        raise BadEnvironment(name, f"expected {low} to {high}, got {number}")
    return number


def read_choice(name: str, default: str, *, choices: tuple[str, ...]) -> str:
    """Return one of `choices`. Errors: BadEnvironment for anything else."""
    value = read_text(name, default).strip()
    if value not in choices:
        raise BadEnvironment(name, f"expected one of {', '.join(choices)}, got {value!r}")
    return value


def read_list(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the parts of a comma list, trimmed, empty ones dropped."""
    text = read_text(name, ",".join(default))
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_path(name: str, default: Path) -> Path:
    """Return an absolute path; `~` is the home, a relative one starts at the current folder."""
    text = read_text(name)
    path = Path(text) if text else default
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise BadEnvironment(name, f"unusable path {text!r}: {error}") from None


def read_paths(name: str, default: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return absolute paths, separated like PATH. Errors: BadEnvironment for a relative one."""
    paths = []
    for part in filter(None, read_text(name).split(os.pathsep)):
        path = Path(part).expanduser()
        if not path.is_absolute():
            raise BadEnvironment(name, f"expected absolute paths, got {part!r}")
        paths.append(path.resolve())
    return tuple(paths) or default


def prepare_data_dir(path: Path) -> Path:
    """Create the data directory for its owner alone. Errors: BadEnvironment when it cannot."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadEnvironment("COUNTERSIGN_DATA_DIR", f"cannot create {path}: {error}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadEnvironment("COUNTERSIGN_DATA_DIR", f"{path} is not writable")
    return path


def read_secret_key(data_dir: Path) -> str:
    """Return SECRET_KEY, else the one in the data directory, made at the first start."""
    given = read_text("SECRET_KEY")
    if given:
        return given
    path = data_dir / "secret_key"
    try:
        if not path.exists():
            _write_secret_key(path)
    except OSError as error:
        raise BadEnvironment("SECRET_KEY", f"cannot create {path}: {error}") from None
    try:
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadEnvironment("SECRET_KEY", f"cannot read {path}: {error}") from None
    if not key:
        raise BadEnvironment("SECRET_KEY", f"{path} is empty; delete it to have a new one made")
    return key


def _write_secret_key(path: Path) -> None:
    # Written aside and linked: of several first starts exactly one key gets the name, and whole.
    aside = path.with_name(f".secret_key.{os.getpid()}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(secrets.token_urlsafe(SECRET_KEY_BYTES))
    with contextlib.suppress(FileExistsError):
        os.link(aside, path)
    aside.unlink()


def read_url(name: str, default: str) -> str:
    """Return an http or https address without its last slash. Errors: BadEnvironment for others."""
    url = read_text(name, default).strip().rstrip("/")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadEnvironment(name, f"not an address: {url!r}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise BadEnvironment(name, "expected http://host or https://host")
    return url


def read_redis_url() -> str:
    """Return REDIS_URL or the empty string. Errors: BadEnvironment for another kind of address."""
    url = read_text("REDIS_URL").strip()
    if url and urlsplit(url).scheme not in REDIS_SCHEMES:
        raise BadEnvironment("REDIS_URL", "expected redis://host:port/number")
    return url


def read_postgres() -> Mapping[str, Any] | None:
    """Return Django's connection keys from DATABASE_URL, or None when it is not set.

    Shape: NAME, USER, PASSWORD, HOST, PORT, and `query` (libpq options of the address as a dict).
    Errors: BadEnvironment for another scheme, a bad port or no name; the value is never shown.
    """
    text = read_text("DATABASE_URL").strip()
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in POSTGRES_SCHEMES:
        raise BadEnvironment("DATABASE_URL", "expected postgresql://user:password@host:port/name")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise BadEnvironment("DATABASE_URL", "the database name is missing")
    return {
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": _port_of(parts),
        "query": dict(parse_qsl(parts.query)),
    }


def _port_of(parts: SplitResult) -> str:
    try:
        return str(parts.port or "")
    except ValueError:
        raise BadEnvironment("DATABASE_URL", "the port is not a number") from None
