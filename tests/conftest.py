"""Every annotation of the package is checked while the tests run."""

import pytest
from jaxtyping import config, install_import_hook

# Before the package is first imported. An int where a float is asked for is fine, as PEP 484 says.
install_import_hook("contourmc", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


@pytest.fixture
def untyped():
    """No type checks: what somebody who passes a wrong type without them gets to read."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
