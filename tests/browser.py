"""Debian's Chromium, headless: pages are opened as people open them, and everything that they do is heard."""

import contextlib
import os
import shutil

import pytest

from optional_packages import needs

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What a page with a script sets when that is done; one without is ready at once.
READY = "html[data-ready], html:not(:has(script))"


@contextlib.contextmanager
def started():
    """A browser; skipped where there is none, but never in continuous integration."""
    program = shutil.which("chromium")
    if program is None:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say("chromium is not installed: apt-get install chromium")
    with needs("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, path, width=1280, theme="light"):
    """A page, and a list of what it said on the console and asked for beyond its own file; which stays empty."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page, heard = context.new_page(), []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    page.wait_for_selector(READY)
    yield page, heard
    context.close()
