"""Sign-in: Django's own form, throttled by name and address together and by each alone.

A name alone has a high limit, so that a stranger can hardly lock Sir out by failing in his name.
Counts live in the process's cache, so a restart forgets them; that is worth less than a dependency
on a server that may be down. Source: DESIGN section 16.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

MAX_FAILURES = (5, 20, 60)
"""Of a name from one address, of one address, of one name from everywhere."""
WINDOW_SECONDS = 300


class SignIn(LoginView):
    """Let a person in; after five failures in five minutes they have to wait."""

    template_name = "registration/login.html"
    redirect_authenticated_user = True

    @method_decorator(sensitive_post_parameters("password"))
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a try before the password is looked at when there were too many."""
        if request.method == "POST" and _is_throttled(request):
            return self._refuse(request)
        return super().dispatch(request, *args, **kwargs)

    def _refuse(self, request: HttpRequest) -> HttpResponse:
        form = AuthenticationForm(request)
        form.cleaned_data = {}
        form.initial["username"] = request.POST.get("username", "")[:150]
        words = gettext("Too many tries. Wait five minutes and try again.")
        context = self.get_context_data(form=form, throttled=words)
        response = self.render_to_response(context, status=429)
        response["Retry-After"] = str(WINDOW_SECONDS)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Count a failure by name and address."""
        for key in _keys(self.request):
            cache.add(key, 0, WINDOW_SECONDS)
            cache.incr(key)
        return super().form_invalid(form)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Forget the failures of a name that got in."""
        cache.delete(_keys(self.request)[0])
        return super().form_valid(form)


def _keys(request: HttpRequest) -> tuple[str, str, str]:
    name = hashlib.sha256(request.POST.get("username", "")[:150].casefold().encode()).hexdigest()
    address = request.META.get("REMOTE_ADDR", "")
    return f"sign-in:{name}:{address}", f"sign-in:address:{address}", f"sign-in:name:{name}"


def _is_throttled(request: HttpRequest) -> bool:
    counts = cache.get_many(_keys(request))
    return any(
        counts.get(key, 0) >= most for key, most in zip(_keys(request), MAX_FAILURES, strict=True)
    )
