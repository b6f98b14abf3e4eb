"""FastAPI: a dependency that verifies a webhook.

@app.post("/hooks")
async def hooks(event: Annotated[WebhookEvent, Depends(webhook_event())]) -> None:
    print(event["type"])
"""

from __future__ import annotations

import os
from typing import Any, Awaitable, Callable, Sequence, Union

from fastapi import HTTPException, Request

from .errors import SignatureError
from .webhooks import construct_event


def webhook_event(
    secret: Union[None, str, Sequence[str]] = None, *, tolerance: float = 300
) -> Callable[[Request], Awaitable[Any]]:
    """Makes a dependency that gives the event of a request. Wrong signatures are answered 401.

    secret: default: the environment's POSTRIDER_WEBHOOK_SECRET
    """

    async def verified_event(request: Request) -> Any:
        secrets = os.environ.get("POSTRIDER_WEBHOOK_SECRET", "") if secret is None else secret
        try:
            return construct_event(await request.body(), request.headers, secrets, tolerance=tolerance)
        except SignatureError as error:
            raise HTTPException(status_code=401, detail=str(error)) from error

    return verified_event
