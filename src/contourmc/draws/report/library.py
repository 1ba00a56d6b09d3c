"""The script that draws the charts: Vega, from the package vl-convert-python, to be put into the page."""

from functools import cache

from contourmc._core.extras import import_extra

OPENED = {"</script": r"<\/script", "<!--": r"<\!--"}  # what would end a script, and the same in JavaScript


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, which needs no network."""
    script: str = import_extra("vl_convert", "report").javascript_bundle()
    for text, safe in OPENED.items():
        script = script.replace(text, safe)
    return script
