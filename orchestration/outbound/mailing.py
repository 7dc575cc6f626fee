"""Send plain-text mail by Django's backend: one recipient, no HTML, no header from outside."""

from __future__ import annotations

from collections.abc import Sequence
from smtplib import SMTPException

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email

from orchestration.outbound.addresses import AddressRefused


class MailFailed(Exception):
    """The server did not take the mail. The message holds neither address nor password."""


def require_address(address: str) -> str:
    """Return an address that mail can go to.

    Errors: AddressRefused for anything else, or when no mail server is set up.
    """
    if not settings.EMAIL_HOST:
        raise AddressRefused("no mail server is set up: the operator sets EMAIL_HOST")
    text = address.strip()
    try:
        validate_email(text)
    except ValidationError:
        raise AddressRefused("this is not an e-mail address") from None
    return text


def hide_address(address: str) -> str:
    """Name an address without giving it away whole."""
    name, _, host = address.rpartition("@")
    return f"{name[:2]}…@{host}"


def send_mail(
    address: str, *, subject: str, text: str, message_id: str, thread: Sequence[str] = ()
) -> None:
    """Send one mail. The same message id on every try lets the reader's program drop a second one.

    `thread` lists the ids of the mails it follows, the opening first: it answers that one.

    Errors: MailFailed.
    """
    line = " ".join(subject.split())
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "countersign"
    headers = {"Message-ID": f"<{message_id}@{host}>", "Auto-Submitted": "auto-generated"}
    if thread:
        known = [f"<{one}@{host}>" for one in thread]
        headers |= {"In-Reply-To": known[0], "References": " ".join(known)}
    mail = EmailMessage(subject=line, body=text, to=[address], headers=headers)
    try:
        mail.send()
    except (SMTPException, OSError) as error:
        code = getattr(error, "smtp_code", "")
        said = f"{type(error).__name__} {code}".strip()
        raise MailFailed(f"the mail server did not take it: {said}") from None
