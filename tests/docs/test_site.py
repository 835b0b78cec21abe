"""The site is built without a warning; its links lead somewhere, and it loads nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pages import PAGES, ROOT

import ectype as ec
from browser import started
from ectype.cli import COMMANDS, PLUGINS
from optional_packages import needs

BUILD = "python -m sphinx -W --keep-going docs docs/_build"
# What a browser asks for by itself, and the attribute that says where.
LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
# Pages with tables, long commands and signatures, and what is wider than a phone there and does not scroll by itself.
WIDE = ("index", "tutorial", "paper", "reference/api", "reference/commands", "background/benchmarks", "serving")
BEYOND = """(width) => [...document.querySelectorAll("article *")]
  .filter((one) => one.getBoundingClientRect().right > width + 1)
  .filter((one) => {
    for (let above = one.parentElement; above; above = above.parentElement)
      if (getComputedStyle(above).overflowX !== "visible") return false;
    return true;
  })
  .map((one) => `${one.tagName}: ${one.textContent.slice(0, 60)}`)"""
# Links of a page to itself at another address, which no browser follows.
ABOUT = {"canonical", "search"}


class Page(HTMLParser):
    """The places of a page, its links, and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found["id"]} if found.get("id") else set()
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]) and found.get("rel") not in ABOUT:
            self.loads.append(found[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages, by their files; built by the command of the README, into another folder."""
    for name in ("sphinx", "furo", "myst_parser"):
        needs(name)
    assert BUILD in (ROOT / "README.md").read_text()
    assert BUILD in (ROOT / "CONTRIBUTING.md").read_text()
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, *BUILD.replace("docs/_build", str(folder / "html")).split()[1:], "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path: Page(path) for path in sorted((folder / "html").rglob("*.html"))}


def test_every_page_is_built(site):
    made = {path.relative_to(common(site)).with_suffix(".md") for path in site}
    assert {Path(page) for page in PAGES} <= made


def common(site):
    """The folder of the site."""
    return next(path.parent for path in site if path.name == "index.html" and path.parent.name == "html")


def test_links_lead_somewhere(site):
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name}: {link}"
            if parts.fragment and target in site:
                assert unquote(parts.fragment) in site[target].ids, f"{path.name}: {link}"


def test_a_phone_shows_pages_whole(site):
    with started() as browser:
        tab = browser.new_page(viewport={"width": 390, "height": 900})
        for name in WIDE:
            tab.goto((common(site) / f"{name}.html").as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert tab.evaluate(BEYOND, 390) == [], name


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in site.items():
        for address in page.loads:
            assert not urlsplit(address).netloc, f"{path.name}: {address}"
    for style in common(site).rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", style.read_text()):
            assert address.startswith("data:") or not urlsplit(address).netloc, f"{style.name}: {address}"


def test_every_public_name_and_command_is_in_the_reference(site):
    api, commands = (site[common(site) / "reference" / f"{name}.html"] for name in ("api", "commands"))
    homes = {name: getattr(ec, name) for name in ec.__all__ if name != "__version__"}
    for name, value in homes.items():
        place = f"module-{value.__name__}" if type(value).__name__ == "module" else f"ectype.{name}"
        assert place in api.ids, name
    assert {f"ectype-{name}" for name in (*COMMANDS, *PLUGINS)} <= commands.ids
