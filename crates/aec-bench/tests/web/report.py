"""Opens an HTML report from disk in Chromium, uses it as a person would, and takes pictures.

Usage: report.py FILE BROWSER DIRECTORY-OF-PICTURES
"""

import csv
import io
import pathlib
import sys

from playwright.sync_api import sync_playwright

FILE, BROWSER = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
PICTURES = pathlib.Path(sys.argv[3])
PICTURES.mkdir(parents=True, exist_ok=True)


class Watched:
    """A page on which every console message, dialog and request is a failure."""

    def __init__(self, browser, scheme):
        self.address, self.scheme = FILE.as_uri(), scheme
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 800}, color_scheme=scheme, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append("dialog"), dialog.dismiss()))
        self.page.on("request", self.request)

    def request(self, request):
        if request.url.split("#")[0] != self.address and not request.url.startswith("blob:"):
            self.troubles.append(f"request: {request.url}")

    def open(self, place=""):
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def picture(self, name):
        self.page.screenshot(path=PICTURES / f"report-{name}-{self.scheme}.png")

    def close(self):
        assert not self.troubles, self.troubles
        self.context.close()


def rows(page):
    return page.locator("table.trials tbody tr[id]")


def cells(page, column):
    return rows(page).locator(f"td.c-{column}").all_inner_texts()


def overview(watched):
    page = watched.open()
    assert page.locator("figure svg").count() >= 3
    assert page.locator("svg[aria-label]").count() == page.locator("svg").count()
    assert page.locator("#agents tbody tr").count() == 2
    watched.picture("overview")
    before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
    page.locator("#theme").click()


def table(watched):
    page = watched.open("#trials")
    rows(page).first.wait_for()
    assert rows(page).count() < 80, "only rows in sight are in the page"
    assert "300 of 300" in page.locator(".tools output").inner_text()
    task = rows(page).first.locator("td.c-task")
    assert task.text_content().startswith("structural/beam-")
    assert task.get_attribute("title").startswith("generated/s/structural/beam-")
    page.locator("th.c-reward button").click()
    rewards = [float(cell) for cell in cells(page, "reward") if cell != "–"]
    assert rewards == sorted(rewards, reverse=True) and len(rewards) > 5
    page.locator("select[aria-label=agent]").select_option("other")
    assert set(cells(page, "agent")) == {"other"}
    page.locator("input[aria-label='Search trials']").fill("no such thing")
    # The table follows what is typed a moment later.
    page.locator("table.trials", has_text="No trial fits").wait_for()
    page.get_by_role("button", name="Clear").click()
    page.locator(".tools output", has_text="300 of 300").wait_for()
    watched.picture("trials")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = list(csv.reader(io.StringIO(pathlib.Path(download.value.path()).read_text())))
    assert len(lines) == 301
    assert not [cell for line in lines for cell in line if cell.lstrip().startswith(("=", "+", "-", "@"))]


def trial(watched):
    page = watched.open("#trials&sort=-trace")
    rows(page).first.wait_for()
    rows(page).first.click()
    page.wait_for_selector(".trace .entry")
    assert page.locator("table.fields tbody tr").count() == 2
    page.get_by_role("button", name="Open all").click()
    assert page.locator(".entry details:not([open])").count() == 0
    page.locator("input[aria-label='Search in trace']").fill("hacked")
    page.keyboard.press("Enter")
    assert page.locator(".entry.found mark").count() >= 1
    errors = page.locator(".trace .tools button", has_text="error")
    errors.click()
    assert page.locator(".entry.found.error").count() == 1
    watched.picture("trial")


def keyboard_and_difference(watched):
    page = watched.open()
    page.keyboard.press("t")
    rows(page).first.wait_for()
    for key in ("ArrowDown", "Space", "ArrowDown", "m"):
        page.keyboard.press(key)
    page.get_by_role("link", name="Diff of 2").click()
    page.wait_for_selector("text=Difference of two trials")
    watched.picture("difference")
    page.keyboard.press("Escape")
    rows(page).first.wait_for()


def inert(watched):
    page = watched.page
    assert page.evaluate("typeof hacked") == "undefined"
    elements = page.evaluate("[...document.querySelectorAll('main *')].map((element) => element.localName)")
    assert not {"img", "iframe", "object", "embed", "form", "style", "link"} & set(elements)


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        watched = Watched(browser, scheme)
        for part in (overview, table, trial, keyboard_and_difference):
            part(watched)
            inert(watched)
        watched.close()
    browser.close()
