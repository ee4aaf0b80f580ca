"""The page in a real browser: keys, undo, lasso, fit again, reload, two tabs, a killed server."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from dcgst.label.journal import Journal
from tests.label.conftest import HOSTILE, label_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    "--no-sandbox", "--enable-unsafe-swiftshader", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield found
        found.close()


def is_problem(message) -> bool:
    """An error on the console; that the server has ended is none."""
    return message.type == "error" and "ERR_CONNECTION_REFUSED" not in message.text


@pytest.fixture
def open_page(browser):
    """Open a tab; at the end, no script may have failed and no dialog may have opened."""
    context = browser.new_context(viewport={"width": 1200, "height": 850})
    problems: list[str] = []

    def visit(address: str):
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on(
            "console",
            lambda message: problems.append(message.text) if is_problem(message) else None,
        )
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        return page

    yield visit
    context.close()
    assert problems == []


def expect(page, selector: str):
    return playwright.expect(page.locator(selector))


def press(page, key: str) -> None:
    """Press a key and wait for the next card."""
    before = page.inner_text("#node-id")
    page.keyboard.press(key)
    expect(page, "#node-id").not_to_have_text(before)


def classes_in(folder: Path) -> dict[str, str]:
    return Journal(folder.with_name(f"{folder.name}-labels.csv.jsonl")).state.classes


def test_labels_by_keys_undo_and_redo(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        assert "token" not in page.url, "the token does not stay in the address bar"
        ids = []
        for key in "123":
            ids.append(page.inner_text("#node-id"))
            press(page, key)
        assert classes_in(folder) == dict(zip(ids, "abc", strict=True))
        press(page, "s")
        press(page, "u")
        assert "3 new labels" in page.inner_text("#counts")
        assert "2 skipped" in page.inner_text("#counts")
        for _ in range(3):
            page.keyboard.press("z")
            expect(page, "#status").to_have_text("undone")
            page.locator("#status").evaluate("element => { element.textContent = ''; }")
        assert page.inner_text("#node-id") == ids[2]
        assert classes_in(folder) == {ids[0]: "a", ids[1]: "b"}
        page.keyboard.press("y")
        expect(page, "#status").to_have_text("redone")
        assert classes_in(folder)[ids[2]] == "c"


def test_predictions_are_hidden_for_random_nodes_only(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        page.select_option("#mode", "audit")
        expect(page, "#why").to_contain_text("Randomly")
        assert page.locator("#likeliest li").count() == 0
        assert "predicted" not in page.inner_text("#neighbors")
        page.select_option("#mode", "suggest")
        expect(page, "#why").to_contain_text("Suggested")
        assert page.locator("#likeliest li").count() == 3
        assert "most similar label of" in page.inner_text("#reason")


def test_a_new_class_and_hostile_texts(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        page.keyboard.press("/")
        page.keyboard.type("n050")
        expect(page, "#found button").to_have_count(1)  # the results of all four characters
        page.click("#found button")
        expect(page, "#node-id").to_contain_text("n050")
        assert page.inner_text("#node-id") == f"n050{HOSTILE}"
        assert HOSTILE in page.inner_text("#columns")
        assert page.locator("img").count() == 0
        page.keyboard.press("Escape")
        page.fill("#new-class", HOSTILE)
        page.press("#new-class", "Enter")
        expect(page, "#classes button").to_have_count(4)
        assert classes_in(folder) == {f"n050{HOSTILE}": HOSTILE}
        assert page.locator("img").count() == 0


def test_lasso_labels_many_nodes(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        expect(page, "#overlay").to_have_attribute("width", re.compile(r"\d{3}"))
        page.click("#lasso")
        box = page.locator("#overlay").bounding_box()
        x, y, w, h = (box[key] for key in ("x", "y", "width", "height"))
        page.mouse.move(x + 2, y + 2)
        page.mouse.down()
        for px, py in ((x + w - 2, y + 2), (x + w - 2, y + h - 2), (x + 2, y + h - 2)):
            page.mouse.move(px, py, steps=4)
        page.mouse.up()
        page.wait_for_selector("#selection:not([hidden])")
        assert page.inner_text("#selection-count") == "120 nodes selected"
        page.select_option("#selection-class", "b")
        page.click("#selection-apply")
        page.wait_for_selector("#selection", state="hidden")
        assert set(classes_in(folder).values()) == {"b"}
        assert len(classes_in(folder)) == 120


def test_fit_again_shows_progress_and_before_and_after(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        assert page.is_disabled("#refit")
        page.select_option("#mode", "audit")
        for key in "1231231231":
            press(page, key)
        assert "estimated from" in page.inner_text("#estimate")
        page.click("#refit")
        expect(page, "#refit-text").to_contain_text("predictions changed", timeout=120_000)
        assert "randomly chosen nodes" in page.inner_text("#refit-text")
        expect(page, "#run").to_have_text("run-2")
    assert json.loads((folder.with_name("run-2") / "run.json").read_text())["audited"]


def test_reload_and_second_tab_keep_everything(folder, open_page):
    with label_server(folder) as (address, _):
        first = open_page(address)
        second = open_page(address)
        assert first.inner_text("#node-id") != second.inner_text("#node-id")
        for key in "1212":
            press(first, key)
            press(second, key)
        assert len(classes_in(folder)) == 8
        shown = first.inner_text("#node-id")
        first.reload()
        first.wait_for_selector("body[data-ready]")
        assert first.inner_text("#node-id") == shown
        assert "8 new labels" in first.inner_text("#counts")
        for count, page in ((7, second), (6, first)):
            page.keyboard.press("z")
            expect(page, "#status").to_have_text("undone")
            assert len(classes_in(folder)) == count


def test_a_killed_server_loses_no_label_and_continues(folder, open_page, browser):
    with label_server(folder) as (address, process):
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        for key in "123":
            press(page, key)
        shown = page.inner_text("#node-id")
        os.kill(process.pid, signal.SIGKILL)
        page.keyboard.press("1")
        page.wait_for_selector("#status.bad")
        assert page.inner_text("#node-id") == shown, "a label that was not stored is not skipped"
        context.close()
    assert len(classes_in(folder)) == 3
    with label_server(folder) as (address, _):
        page = open_page(address)
        assert "3 new labels" in page.inner_text("#counts")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(folder, open_page, scheme):
    with label_server(folder) as (address, _):
        page = open_page(address)
        page.set_viewport_size({"width": 360, "height": 740})
        page.emulate_media(color_scheme=scheme)
        width = page.locator("html").evaluate("element => element.scrollWidth")
        assert width <= 360
        color = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 24, 39)"}[scheme]
        expect(page, "body").to_have_css("background-color", color)


def test_every_control_has_a_name(folder, open_page):
    with label_server(folder) as (address, _):
        page = open_page(address)
        page.select_option("#mode", "suggest")
        controls = page.locator("button, input, select, [role=img], progress")
        names = controls.evaluate_all(
            "all => all.map(e => e.ariaLabel || e.labels?.[0]?.textContent || e.textContent)"
        )
        assert len(names) > 15
        assert all(name.strip() for name in names)
