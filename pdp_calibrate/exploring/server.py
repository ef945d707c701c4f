"""Serve the page to one browser on this computer; thin, without mathematics.

``pip install "pdp-calibrate[explore]"``. The address holds a token that every request must contain:
all other paths are relative to it, so nothing else stores it, not even a cookie. There is no
websocket: an attempt to open one is closed. Everything is loaded from this server, which the
browser is told to enforce (content-security-policy).
"""

from __future__ import annotations

import hmac
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from importlib import import_module, resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pdp_calibrate.core.numbers import width
from pdp_calibrate.errors import MissingLibraryError, PdpError
from pdp_calibrate.exploring.answers import completed, questions_in
from pdp_calibrate.exploring.handover import release
from pdp_calibrate.exploring.schema import KINDS
from pdp_calibrate.exploring.subject import Subject
from pdp_calibrate.exploring.view import Page, in_a_sentence
from pdp_calibrate.jobs.run import Outcome
from pdp_calibrate.show.page import caption_of, libraries, report, shown
from pdp_calibrate.show.words import number

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'"
    " 'unsafe-inline'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_LARGEST = 8_000_000  # bytes of a form, which may hold a model


def framework() -> tuple[Any, Any]:
    """Return starlette's responses and uvicorn, or raise if one is missing."""
    try:
        return import_module("starlette.responses"), import_module("uvicorn")
    except ImportError as error:
        reason = "the page needs starlette and uvicorn"
        raise MissingLibraryError.needed_for(reason, extra="explore") from error


class Application:
    """The ASGI application: checks the token first, then answers."""

    def __init__(self, subject: Subject, *, token: str) -> None:
        self._responses, _ = framework()
        self._subject = subject
        self._page = Page(subject=subject)
        self._token = token.encode()
        self._drawing = threading.Lock()  # matplotlib's settings belong to the whole program
        jinja2, _ = libraries()
        environment = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, finalize=shown,
            loader=jinja2.PackageLoader("pdp_calibrate.exploring", "."),
        )  # fmt: skip
        self._whole = environment.get_template("page.html.j2")
        self._meaning = environment.get_template("meaning.html.j2")
        self._posts: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "view": self._view,
            "pictures": self._pictures,
            "picture": self._picture,
            "release": self._release,
            "pdp.py": lambda given: self._file(given, "code", "pdp.py"),
            "command.sh": lambda given: self._file(given, "command", "command.sh"),
            "plan.toml": lambda given: self._file(given, "plan", "plan.toml"),
            "report.html": self._report,
            "people.csv": self._rows,
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or nothing at all without the token."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            return
        first, slash, name = scope["path"].removeprefix("/").partition("/")
        if not (_is_local(scope) and hmac.compare_digest(first.encode(), self._token)):
            await self._responses.Response(status_code=404)(scope, receive, send)
            return
        if not slash:
            answer = self._responses.RedirectResponse(f"/{first}/")
        elif scope["method"] == "GET":
            answer = self._get(name)
        elif scope["method"] == "POST" and name in self._posts:
            body = await _body(receive)
            answer = await self._worked(name, body)
        else:
            answer = self._responses.Response(status_code=404)
        await answer(scope, receive, send)

    async def _worked(self, name: str, body: bytes | None) -> Any:
        if body is None:
            return self._responses.Response("the form is too large.", status_code=413)
        from starlette.concurrency import run_in_threadpool

        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        return await run_in_threadpool(self._posts[name], dict(pairs))

    def _get(self, name: str) -> Any:
        if name == "":
            answers = completed({}, self._subject)
            filled = {"subject": self._subject, "answers": answers, "kinds": KINDS}
            return self._html(self._whole.render(**filled, asked=questions_in(answers)[1:]))
        kinds = {"page.css": "text/css", "page.js": "text/javascript"}
        if name not in kinds:
            return self._responses.Response(status_code=404)
        text = resources.files("pdp_calibrate.exploring").joinpath(name).read_text("utf-8")
        return self._responses.Response(text, media_type=kinds[name], headers=_HEADERS)

    def _html(self, text: str) -> Any:
        return self._responses.HTMLResponse(text, headers=_HEADERS)

    def _view(self, given: Mapping[str, str]) -> Any:
        return self._html(self._meaning.module.view(self._page.view(given)))

    def _pictures(self, given: Mapping[str, str]) -> Any:
        found = self._page.pictures(given).items()
        captions = [(name, *caption_of(name, view)) for name, view in found]
        return self._html(self._meaning.module.pictures(captions))

    def _picture(self, given: Mapping[str, str]) -> Any:
        said = dict(given)
        name = said.pop("picture", "")
        with self._drawing:
            found = self._page.picture(said, name)
        return self._html("" if found is None else shown(found["svg"]))

    def _release(self, given: Mapping[str, str]) -> Any:
        def work() -> str:
            found = self._page.worked(given)
            return _outcome(release(found.asked, found.subject, found.answers))

        return self._html(
            in_a_sentence(
                lambda: self._meaning.module.released(work(), "fine"),
                lambda words: self._meaning.module.released(words, "problem"),
            )
        )

    def _file(self, given: Mapping[str, str], field: str, name: str) -> Any:
        view = self._page.view(given)
        text = "" if view.handover is None else getattr(view.handover, field)
        if not text:
            why = "" if view.handover is None else view.handover.without_plan
            return self._refused(view.problem or why)
        return self._attached(text, name)

    def _report(self, given: Mapping[str, str]) -> Any:
        def work() -> Any:
            found = self._page.worked(given).calibration
            if found is None:
                raise PdpError("a report is about noise that is known: learn the model first.")
            with tempfile.TemporaryDirectory() as folder, self._drawing:
                page = report(found, Path(folder) / "report.html").read_text("utf-8")
            return self._attached(page, "report.html")

        return in_a_sentence(work, self._refused)

    def _rows(self, given: Mapping[str, str]) -> Any:
        def work() -> Any:
            stand_in = self._page.worked(given).subject.stand_in
            if stand_in is None:
                raise PdpError("the rows are in their own file.")
            return self._attached(stand_in.frame().to_csv(index=False), "people.csv")

        return in_a_sentence(work, self._refused)

    def _refused(self, words: str) -> Any:
        return self._responses.PlainTextResponse(words, status_code=400, headers=_HEADERS)

    def _attached(self, text: str, name: str) -> Any:
        headers = _HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
        return self._responses.Response(text, media_type="text/plain", headers=headers)


def _is_local(scope: Any) -> bool:
    """Whether the request names this computer; any other host name may be DNS rebinding."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and hosts[0].rpartition(b":")[0] in (b"127.0.0.1", b"localhost")


async def _body(receive: Any) -> bytes | None:
    """Return the body of a request, None if it is too large."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > _LARGEST:
            return None
        if not message.get("more_body"):
            return body


def _outcome(found: Outcome) -> str:
    """Describe what was released, and what was spent."""
    (one,) = found.releases
    answers = zip(one.job.questions, one.release.values, one.release.half_widths(), strict=True)
    said = "; ".join(
        f"{question.text} = {_written(value)} (±{width(wide)} in 95 % of releases)"
        for question, value, wide in answers
    )
    spent = f"Spent {found.ledger.spent:.4g} of {found.ledger.epsilon:.4g}."
    return f"Released: {said}. {spent}"


def _written(value: Any) -> str:
    if not hasattr(value, "to_dict"):
        return number(value)
    return ", ".join(f"{name}: {number(one)}" for name, one in value.to_dict().items())


def serve(subject: Subject, *, port: int, announce: Callable[[str], None]) -> None:
    """Serve the page until it is interrupted.

    Parameters
    ----------
    subject
        What it is about.
    port
        The port on 127.0.0.1; 0 for any free one.
    announce
        Called with the address, including its token, before the first request can arrive.
    """
    _, uvicorn = framework()
    token = secrets.token_urlsafe(24)
    application = Application(subject, token=token)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise PdpError(
                f"port {port} cannot be used: choose another, or 0 for any free one."
            ) from error
        door.listen()
        announce(f"http://127.0.0.1:{door.getsockname()[1]}/{token}/")
        settings = uvicorn.Config(
            application, log_level="critical", access_log=False, lifespan="off", ws="none",
            server_header=False,
        )  # fmt: skip
        uvicorn.Server(settings).run(sockets=[door])
