"""Write docs/explore.png, a picture of `mercer explore`: python tools/explore_screenshot.py

Needs chromium and playwright, as `make test-browser` does.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from sklearn.datasets import load_wine

TARGET = Path(__file__).resolve().parent.parent / "docs" / "explore.png"
COLUMNS = ["flavanoids", "color_intensity"]


def main() -> None:
    """Choose two columns of the wine data, click beside a mode, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        load_wine(as_frame=True).data.to_csv(Path(folder) / "wine.csv", index=False)
        process = subprocess.Popen(
            [sys.executable, "-m", "mercer.cli", "explore", "wine.csv", "--no-browser"],
            cwd=folder, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            picture = photograph(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    TARGET.write_bytes(picture)
    print(f"{TARGET}: {len(picture) / 1000:.0f} kB")


def photograph(address: str) -> bytes:
    """The page as a PNG file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1180, "height": 800})
        page.goto(address)
        for select, column in zip(("#across", "#up"), COLUMNS, strict=True):
            page.locator(select).select_option(column)
        expect(page.locator("#modes th")).to_have_text(["mode", *COLUMNS, "rows"])
        page.locator("#bandwidth").fill("-0.1")
        expect(page.locator("#detail")).to_have_text(re.compile("local maxim"), timeout=30_000)
        box = page.locator("#plot").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 0.62 * box["width"], box["y"] + 0.38 * box["height"])
        expect(page.locator("#preimage")).not_to_be_empty(timeout=30_000)
        picture = page.screenshot()
        browser.close()
    return picture


if __name__ == "__main__":
    main()
