"""What the template parts take: small typed rows that a page fills, and never querysets.

Each class is the input of the part its docstring names. Times are aware datetimes.
Source: UI.md section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dashboard.vocabulary import Label

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, slots=True)
class ProjectLink:
    """One project in the sidebar; `initial` stands on its tile."""

    slug: str
    name: str
    initial: str
    url: str
    state: str
    is_paused: bool = False
    is_active: bool = False


@dataclass(frozen=True, slots=True)
class NavLink:
    """One line of the sidebar. `count` is shown in amber when it is above 0."""

    code: str
    icon: str
    word: str | StrPromise
    url: str
    is_active: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Navigation:
    """Everything the shell shows beside the page. Links of pages that do not exist are absent."""

    inbox_count: int | None
    projects: tuple[ProjectLink, ...]
    user_name: str
    active: str
    main: tuple[NavLink, ...]
    system: tuple[NavLink, ...]
    new_work_url: str = ""
    search_url: str = ""
    projects_url: str = ""
    count_url: str = ""
    unread_count: int = 0
    notices_url: str = ""

    @property
    def user_initial(self) -> str:
        """The letter on the user's disc."""
        return self.user_name[:1].upper()


@dataclass(frozen=True, slots=True)
class Crumb:
    """One step of the breadcrumb; the last has no address."""

    word: str | StrPromise
    url: str = ""


@dataclass(frozen=True, slots=True)
class RowTravel:
    """What a row says of its verdict. `state`: signing, signed, refused, changed."""

    state: str
    note: str
    url: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InboxRow:
    """`inbox_row`: one decision in the list. `where` is joined with middle dots."""

    id: str
    url: str
    icon: str
    title: str
    where: Sequence[str]
    opened_at: datetime
    version: int = 1
    digest: str = ""
    kind: str = ""
    blocks: int = 0
    is_unseen: bool = False
    is_p0: bool = False
    is_current: bool = False
    is_selectable: bool = True
    travel: RowTravel | None = None
    pane_url: str = ""
    fragment_url: str = ""


@dataclass(frozen=True, slots=True)
class InboxGroup:
    """`inbox_group`: a head and its rows; never empty."""

    code: str
    word: str | StrPromise
    rows: Sequence[InboxRow]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One column of the dock. `sentences` are the full consequences for the second question."""

    verdict: str
    text: str
    short_text: str
    sign_text: str
    dialog_title: str
    key: str
    consequences: Sequence[str]
    sentences: Sequence[str]
    requires_reason: bool
    is_destructive: bool
    is_primary: bool
    reason_hint: str | StrPromise = ""


@dataclass(frozen=True, slots=True)
class DockField:
    """A further field a kind needs: an amount, a text, a tick; of one `verdict` or of all."""

    name: str
    word: str | StrPromise
    kind: str = "text"
    value: str = ""
    hint: str | StrPromise = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Dock:
    """`verdict_dock`, `verdict_sheet` and `phone_bar`: what can be signed, and what is signed.

    Units: `expires_in` in milliseconds from now, by the server's clock; None without a deadline.
    """

    id: str
    action: str
    version: int
    digest: str
    verdicts: Sequence[Verdict]
    expiry: str
    placeholder: str
    draft: str = ""
    draft_url: str = ""
    pause_url: str = ""
    error: str = ""
    blocked_reason: str = ""
    fields: Sequence[DockField] = ()
    fragment_url: str = ""
    is_choice: bool = False
    chosen: str = ""
    expires_in: int | None = None

    @property
    def template(self) -> str:
        """The part that shows it: buttons beside each other, or a choice with one button."""
        name = "verdict_choice" if self.is_choice else "verdict_dock"
        return f"dashboard/_parts/{name}.html"

    @property
    def shared_fields(self) -> Sequence[DockField]:
        """The fields above the verdicts; one of a single verdict stands with it."""
        return [field for field in self.fields if not field.verdict]


@dataclass(frozen=True, slots=True)
class ClosedCard:
    """`closed_card`: the verdict that stands, in the dock's place. The list reads `outcome`."""

    id: str
    icon: str
    headline: str
    reason: str
    version: int
    digest: str
    outcome: str = ""
    next_url: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of output. `look`: empty, dim or bad."""

    text: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class OutputView:
    """`output`: the tail first; `head` holds the earlier lines behind one button."""

    title: str
    note: str
    exit_label: Label | None
    head: Sequence[OutputLine]
    tail: Sequence[OutputLine]
    total: int


@dataclass(frozen=True, slots=True)
class Round:
    """`lineage`: one earlier round of an item."""

    word: str
    tried: str
    outcome: Label
    outcome_word: str = ""
    evidence: str = ""
    evidence_url: str = ""
    evidence_note: str = ""
    at: datetime | None = None
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class LayerView:
    """`layers`: one verification layer and its outcome."""

    word: str
    icon: str
    css_class: str
    note: str


@dataclass(frozen=True, slots=True)
class MarkView:
    """`mark`: a mark with the claim it stands on."""

    word: str
    role: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """`trust`: declared and proven side by side; None is unknown."""

    declared: float | None
    proven: float | None
    band: str


@dataclass(frozen=True, slots=True)
class KeyLine:
    """`key_help`: the keys of one action."""

    keys: Sequence[str]
    word: str | StrPromise


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """`key_help`: a head and its lines."""

    word: str | StrPromise
    lines: Sequence[KeyLine]


@dataclass(frozen=True, slots=True)
class Banner:
    """`banner`: grey for the connection and notes, amber when it is Sir's, red when it broke."""

    text: str
    icon: str
    tone: str = ""
    link_text: str = ""
    link_url: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """`progress`: a bar of ink with its words."""

    value: int
    whole: int
    words: str
    width: int = 120
