"""Speed of the labeling page on a large graph, and labels lost when the server is killed.

The page is opened in Chromium. Times of keys are from the key to the next card on the screen.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from dcgst import LabelPropagation, fit, synthetic
from dcgst.label.journal import Journal

OPTIONS = ["--no-sandbox", "--enable-unsafe-swiftshader", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip


def start(run: Path, out: Path) -> tuple[subprocess.Popen[str], str, float]:
    """Start ``dcgst label``; returns process, address, and the time until it is printed."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "dcgst", "label", str(run), "--no-browser", "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http://\S+", line)
        if found:
            return process, found[0], time.perf_counter() - began
    raise SystemExit("dcgst label did not start")


def press(page: Page, key: str) -> float:
    """Press a key; milliseconds until the next card is shown."""
    return float(
        page.evaluate(
            """key => new Promise(done => {
                const title = document.getElementById("node-id"), began = performance.now();
                const seen = new MutationObserver(() => {
                    seen.disconnect();
                    requestAnimationFrame(() => done(performance.now() - began));
                });
                seen.observe(title, { childList: true, characterData: true, subtree: true });
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            })""",
            key,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--kills", type=int, default=50)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    run = fit(synthetic(arguments.nodes, 5, features=32), folder / "run", LabelPropagation())
    process, address, opened = start(run.folder, folder / "labels.csv")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1300, "height": 900}, bypass_csp=True)
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        ready = time.perf_counter() - began
        print(
            f"{arguments.nodes:,} nodes: run opened and page served after {opened:.1f} s, ", end=""
        )
        print(f"page ready {ready:.1f} s later")
        times = [press(page, random.choice("12345")) for _ in range(arguments.keys)]
        early = np.percentile(times, [50, 95, 100])
        time.sleep(20)  # suggestions and map are computed in the background
        times = [press(page, random.choice("12345")) for _ in range(arguments.keys)]
        late = np.percentile(times, [50, 95, 100])
        for name, found in (("at once", early), ("after 20 s", late)):
            print(f"key to next card {name}: median, 95 %, maximum", np.round(found), "ms")
        browser.close()
    process.send_signal(signal.SIGINT)
    process.communicate()
    print("labels lost after kill -9:", lost_labels(folder, arguments.kills))


def lost_labels(folder: Path, kills: int) -> int:
    """Kill a process that writes labels at random moments; count acknowledged labels not stored."""
    writer = (
        "import sys; from pathlib import Path; from dcgst.label.journal import Journal\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for number in range(10**6):\n"
        "    journal.decide('label', 'tab', [str(number)], 'red'); print(number, flush=True)"
    )
    lost = 0
    for attempt in range(kills):
        path = folder / f"killed-{attempt}.jsonl"
        command = [sys.executable, "-c", writer, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(random.random() / 4)
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = {"0", *process.stdout.read().split()}
        lost += len(acknowledged - Journal(path).state.classes.keys())
    return lost


if __name__ == "__main__":
    main()
