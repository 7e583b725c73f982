"""Opens pages and files of runs of evolution in Chromium, uses them as a person would, and takes pictures.

Usage: evolution.py URL DIRECTORY-OF-FILES BROWSER DIRECTORY-OF-PICTURES

The server shows an evolution and a swarm `vd-1`, and an evolution `vd-2`, which is running.
"""

import pathlib
import sys

from playwright.sync_api import sync_playwright

URL, FILES, BROWSER = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
PICTURES = pathlib.Path(sys.argv[4])
PICTURES.mkdir(parents=True, exist_ok=True)


class Watched:
    """A page on which every console message, dialog and request to another server is a failure."""

    def __init__(self, browser, scheme, allowed, width=1280, **options):
        self.scheme, self.allowed = scheme, allowed
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append("dialog"), dialog.dismiss()))
        self.page.on("request", self.request)

    def request(self, request):
        if not request.url.startswith(self.allowed):
            self.troubles.append(f"request: {request.url}")

    def picture(self, name):
        # At the top, so that the bar is at its usual position.
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=PICTURES / f"evolution-{name}-{self.scheme}.png", full_page=True)

    def close(self):
        assert not self.troubles, self.troubles
        self.context.close()


def inert(page):
    elements = page.evaluate("[...document.querySelectorAll('main *')].map((element) => element.localName)")
    assert not {"img", "iframe", "object", "embed", "script", "style", "link"} & set(elements)
    assert page.evaluate("typeof hacked") == "undefined"


def fits(page, width=1280):
    shown = page.evaluate("document.documentElement.scrollWidth")
    assert shown <= width, (page.url, shown)


def run(page):
    """What the page and the file of a run have in common."""
    inert(page)
    drawing = page.locator("svg.scores")
    assert drawing.get_attribute("role") == "img"
    for part in drawing.get_attribute("aria-labelledby").split():
        assert len(page.locator(f"#{part}").text_content()) > 10
    box = drawing.bounding_box()
    assert box["width"] > 700 and box["height"] > 250, box
    # Nothing is drawn outside.
    outside = page.evaluate(
        """() => {
            const drawing = document.querySelector("svg.scores"), frame = drawing.getBoundingClientRect();
            return [...drawing.querySelectorAll("path, text")].map((part) => part.getBoundingClientRect())
                .filter((part) => part.left < frame.left - 1 || part.right > frame.right + 1 || part.top < frame.top - 1 || part.bottom > frame.bottom + 1).length;
        }"""
    )
    assert outside == 0, outside
    lines = page.locator("details.changes .lines ins")
    assert not lines.first.is_visible()
    page.locator("details.changes summary").first.click()
    assert lines.first.is_visible()
    assert lines.first.inner_text().startswith("+ ")
    colours = page.evaluate("['.lines ins', '.lines .where'].map((part) => getComputedStyle(document.querySelector(part)).backgroundColor)")
    assert colours[0] != colours[1], "what was added has a colour of its own"


def site(browser, scheme):
    watched = Watched(browser, scheme, URL)
    page = watched.page
    page.goto(URL + "/evolution")
    page.wait_for_selector("html[data-ready]")
    fits(page)
    watched.picture("list")
    # The newest come first: the one under way, the swarm, the first one.
    for key in ("j", "j", "j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/evolution/evolve/vd-1")
    page.wait_for_selector("html[data-ready]")
    run(page)
    fits(page)
    page.locator("table.list a", has_text="c-").first.click()
    assert page.locator(".candidate:target").count() == 1
    watched.picture("run")
    page.goto(URL + "/evolution/swarm/vd-1")
    page.wait_for_selector("html[data-ready]")
    run(page)
    fits(page)
    watched.picture("swarm")
    watched.close()


def live(browser, scheme):
    """A run that waits for its model; a printed line says when it may continue."""
    watched = Watched(browser, scheme, URL)
    page = watched.page
    page.goto(URL + "/evolution/evolve/vd-2")
    page.wait_for_selector("#live-evolution[data-events] #live-agents li")
    assert page.locator(".state-running").count() == 1
    assert "cycle 1: changes c-" in page.inner_text("#live-agents")
    inert(page)
    watched.picture("live")
    print("the run may end", flush=True)
    # The page of the finished run replaces it without a reload.
    page.wait_for_selector(".state-ended", timeout=60000)
    assert page.locator("#live-evolution").count() == 0
    watched.close()


def file(browser, scheme, name, **options):
    address = (FILES / f"{name}.html").as_uri()
    watched = Watched(browser, scheme, address, **options)
    page = watched.page
    page.goto(address)
    fits(page, options.get("width", 1280))
    if options.get("java_script_enabled", True):
        run(page)
    else:
        page.locator("details.changes summary").first.click()
        assert page.locator("details.changes .lines ins").first.is_visible()
    watched.picture(f"file-{name}-{options.get('width', 1280)}")
    watched.close()


def backgrounds(browser):
    """Both themes work without a script."""
    shown = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto((FILES / "evolve.html").as_uri())
        shown.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        context.close()
    assert shown[0] != shown[1], shown


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        site(chromium, scheme)
        for name in ("evolve", "swarm"):
            file(chromium, scheme, name)
    file(chromium, "light", "evolve", java_script_enabled=False)
    file(chromium, "light", "evolve", width=420)
    backgrounds(chromium)
    live(chromium, "light")
    chromium.close()
