"""Runs the same tests with `Postrider` and `AsyncPostrider`."""

import asyncio
import importlib.util
import unittest

import postrider

KEY = "rnl_SECRETsecretSECRETsecret"
HAS_HTTPX = importlib.util.find_spec("httpx") is not None


class SyncCalls:
    """`self.do(url, call)` makes a client, calls `call(client)` and returns the result. Waits are recorded, not waited."""

    def do(self, url, call, **settings):
        with postrider.Postrider(KEY, url, **settings) as client:
            self.prepare(client)
            client._pause = lambda pause: self.pauses.append(pause.seconds)
            return call(client)

    def prepare(self, client):
        self.client, self.pauses = client, []
        client._core.random = lambda: 0.5


@unittest.skipUnless(HAS_HTTPX, "httpx is not installed")
class AsyncCalls(SyncCalls):
    def do(self, url, call, **settings):
        async def run():
            async with postrider.AsyncPostrider(KEY, url, **settings) as client:
                self.prepare(client)

                async def pause(one):
                    self.pauses.append(one.seconds)

                client._pause = pause
                return await call(client)

        return asyncio.run(run())
