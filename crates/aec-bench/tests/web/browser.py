"""Opens the pages of a server in Chromium, uses them as a person would, and takes pictures.

Usage: browser.py URL BROWSER DIRECTORY-OF-PICTURES

The server shows the experiments `hostile` and `slow`, which is running. A printed line says when its attempt may end.
"""

import pathlib
import sys

from playwright.sync_api import sync_playwright

URL, BROWSER = sys.argv[1:3]
PICTURES = pathlib.Path(sys.argv[3])
PICTURES.mkdir(parents=True, exist_ok=True)


class Watched:
    """A page on which every console message, dialog and request to another server is a failure."""

    def __init__(self, browser, scheme="light", **options):
        self.scheme = scheme
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme, **options)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("console", lambda message: self.troubles.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.troubles.append("dialog"), dialog.dismiss()))
        self.page.on("request", self.request)

    def request(self, request):
        if not request.url.startswith(URL):
            self.troubles.append(f"request: {request.url}")

    def open(self, path):
        self.page.goto(URL + path)
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def picture(self, name, full=False):
        self.page.screenshot(path=PICTURES / f"{name}-{self.scheme}.png", full_page=full)

    def close(self):
        assert not self.troubles, self.troubles
        self.context.close()


def inert(page):
    assert page.evaluate("typeof hacked") == "undefined"
    assert page.locator("img").count() == 0


def fits(page):
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1280, (page.url, width)


def shift(page):
    """How far elements moved while the page was drawn."""
    return page.evaluate(
        """() => new Promise((done) => {
            let sum = 0;
            new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => done(sum), 100);
        })"""
    )


def every_page(browser, scheme):
    watched = Watched(browser, scheme)
    for name, path in {
        "experiments": "/",
        "experiment": "/experiment/hostile",
        "leaderboard": "/leaderboard",
        "compare": "/compare?base=hostile/idle&other=hostile/reader",
        "library": "/library",
        "task": "/library/civil/channel-000",
        "templates": "/templates",
        "template": "/templates/civil/mannings-pipe-capacity",
        "datasets": "/datasets",
        "dataset": "/datasets/both@1.0.0",
        "audits": "/audits",
        "search": "/search?q=channel",
    }.items():
        page = watched.open(path)
        inert(page)
        fits(page)
        assert shift(page) < 0.05, (path, shift(page))
        assert page.locator("h1").count() == 2, path
        watched.picture(name, full=True)
    watched.close()


def trial(browser, scheme):
    watched = Watched(browser, scheme)
    page = watched.open("/experiment/hostile?agent=reader")
    page.locator("#trials ~ .scroll tbody a").first.click()
    page.wait_for_selector("html[data-ready] .trace .entry")
    inert(page)
    fits(page)
    assert page.locator(".entry.error").count() == 1
    page.keyboard.press("e")
    assert page.locator(".entry.found .stderr").inner_text().count("<script>") == 1
    page.fill("input[aria-label='Search in trace']", "onerror")
    page.keyboard.press("Enter")
    assert page.locator("mark").count() >= 1
    page.click("text=Open all")
    inert(page)
    watched.picture("trial", full=True)
    page.keyboard.press("Escape")
    page.locator("h1").last.click()
    before = page.url
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url != before)
    page.go_back()
    page.wait_for_selector("html[data-ready]")
    page.locator("p:has-text('Compare with') a").first.click()
    page.wait_for_selector("tr.differs")
    inert(page)
    fits(page)
    watched.picture("two-trials", full=True)
    page.go_back()
    page.wait_for_selector("html[data-ready]")
    page.click("text=submission/note.html")
    page.locator("body", has_text="<script>hacked=1</script>").wait_for()
    assert page.evaluate("typeof hacked") == "undefined"
    watched.close()


def keyboard(browser):
    watched = Watched(browser)
    page = watched.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    chosen = page.locator("tr.active a").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/experiment/{chosen}")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("/")
    page.keyboard.type("channel")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=channel")
    page.wait_for_selector("html[data-ready]")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page = watched.open("/library")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    watched.close()


def without_script(browser):
    watched = Watched(browser, java_script_enabled=False)
    page = watched.page
    page.goto(URL + "/experiment/hostile?agent=reader")
    page.select_option("select[name=result]", "partial")
    page.click("button:has-text('Filter')")
    page.locator("#trials ~ .scroll tbody a").first.click()
    page.locator(".plain-trace .entry").nth(3).wait_for()
    assert page.locator(".plain-trace pre", has_text="onerror").count() >= 1
    assert page.locator("#theme").is_hidden()
    watched.picture("without-script", full=True)
    watched.close()


def live(browser):
    watched = Watched(browser)
    page = watched.open("/experiment/slow")
    page.wait_for_selector("#live-run[data-events] #live-attempts a")
    assert "1 under way" in page.inner_text("#live-counts")
    watched.picture("live-run")
    page.click("#live-attempts a")
    page.wait_for_selector(".entry.role-tool_result")
    inert(page)
    watched.picture("live-trial", full=True)
    print("the attempt may end", flush=True)
    # The record replaces the events without a reload.
    page.wait_for_selector(".badge.r-pass", timeout=60000)
    page.locator(".entry").nth(3).wait_for()
    watched.close()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        every_page(chromium, scheme)
        trial(chromium, scheme)
    keyboard(chromium)
    without_script(chromium)
    live(chromium)
    chromium.close()
