"""The verifier over HTTP: `POST /verify`, `GET /health`, `GET /metrics`, and an OpenAPI schema at `/openapi.json`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maspo_rl.config.verifier import UNNAMED_DATASET, VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier.verifier import Question, Verifier

BODY_DEADLINE_S = 30.0
MOST_ITEMS = 1024


class Item(BaseModel):
    """One response and the gold answer of its problem."""

    model_config = ConfigDict(extra="forbid")
    output: str = Field(description="The response, thinking included")
    gold: str | int | float = Field(description="The right answer")
    dataset: str = Field(UNNAMED_DATASET, description="Names the extraction rules of the configuration")
    truncated: bool = Field(False, description="The response was cut off by a length limit")


class VerifyRequest(BaseModel):
    """Items that are judged together, answered in their order."""

    model_config = ConfigDict(extra="forbid")
    items: list[Item] = Field(min_length=1, max_length=MOST_ITEMS)


class ItemVerdict(BaseModel):
    verdict: Label
    reward: float | None = Field(description="null: not judged, to be left out and never counted as wrong")
    extracted: str | None
    reason: str
    seconds: float


class VerifyResponse(BaseModel):
    verdicts: list[ItemVerdict]


class Health(BaseModel):
    status: str
    workers: int
    pending: int


class AsciiJSONResponse(Response):
    """JSON in ASCII, which can carry back any string that came in, lone surrogates included."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode("ascii")


class BodyLimit:
    """ASGI middleware: reads the body within a deadline and a size, and answers 408 or 413 by itself."""

    def __init__(self, app: ASGIApp, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = await self._buffered(scope, receive)
        if isinstance(refusal, Response):
            await refusal(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": refusal, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replay, send)

    async def _buffered(self, scope: Scope, receive: Receive) -> bytes | Response:
        too_large = AsciiJSONResponse({"detail": f"the body is over {self._most_bytes} bytes; send fewer items"}, 413)
        too_large.headers["connection"] = "close"
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._most_bytes:
                return too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_DEADLINE_S):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > self._most_bytes:
                        return too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            return AsciiJSONResponse({"detail": f"the body did not arrive within {BODY_DEADLINE_S:.0f} s"}, 408)


def create_app(config: VerifierConfig) -> FastAPI:
    """The application, with workers of its own that live as long as it does."""
    config.check()
    verifier = Verifier(config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        verifier.start()
        yield
        await asyncio.to_thread(verifier.close)

    app = FastAPI(
        title="maspo_rl verifier",
        summary="Judges mathematical answers",
        lifespan=lifespan,
        default_response_class=AsciiJSONResponse,
    )
    app.add_middleware(BodyLimit, most_bytes=config.max_body_bytes)

    @app.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> Response:
        problems = [{"where": [str(part) for part in each["loc"]], "what": each["msg"]} for each in error.errors()[:10]]
        return AsciiJSONResponse({"detail": problems}, 422)

    @app.post("/verify", responses={code: {"description": text} for code, text in _REFUSALS.items()})
    async def verify(request: VerifyRequest) -> VerifyResponse:
        """Judge responses. The verdicts have the order of the items."""
        if verifier.pending + len(request.items) > config.max_pending:
            raise HTTPException(429, "too many judgements are pending; try again later", {"retry-after": "1"})
        questions = [Question(item.output, str(item.gold), item.dataset, item.truncated) for item in request.items]
        verdicts = await asyncio.gather(*(verifier.judge(question) for question in questions))
        return VerifyResponse(
            verdicts=[
                ItemVerdict(
                    verdict=verdict.label,
                    reward=verdict.reward,
                    extracted=verdict.extracted,
                    reason=verdict.reason,
                    seconds=verdict.seconds,
                )
                for verdict in verdicts
            ]
        )

    @app.get("/health")
    async def health() -> Health:
        """Whether the service answers, and with how many live workers."""
        return Health(status="ok", workers=len(verifier.process_ids()), pending=verifier.pending)

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        """Counters in Prometheus' text format."""
        lines = ["# TYPE maspo_rl_verifier_total counter"]
        lines += [f'maspo_rl_verifier_total{{event="{name}"}} {count}' for name, count in verifier.counts().items()]
        lines += ["# TYPE maspo_rl_verifier_pending gauge", f"maspo_rl_verifier_pending {verifier.pending}"]
        return "\n".join(lines) + "\n"

    return app


_REFUSALS: dict[int | str, str] = {
    400: "The body could not be read",
    408: "The body did not arrive in time",
    413: "The body is too large",
    429: "Too many judgements are pending",
}


def serve(config: VerifierConfig) -> None:
    """Serve until interrupted, on `config.host` (loopback by default) and `config.port`."""
    uvicorn.run(create_app(config), host=config.host, port=config.port, log_level="warning")
