"""A headless Chromium for tests of pages: Debian's, with its driver; tests skip where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser that reports its console and its requests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="pages are tested with selenium (extra dev)")
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or binary is None:
        pytest.skip("no chromium and chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    try:
        yield browser
    finally:
        browser.quit()


def set_width(browser: Any, width: int) -> None:
    """Show the page as on a screen of this width; windows of a desktop cannot be as narrow as a phone."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600})
