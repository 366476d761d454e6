"""The places where the tests of the sandbox run."""

import pytest
from sandbox_places import host


@pytest.fixture(scope="module", params=["N-user", "N-root", "L-user", "L-root"])
def place(request):
    """A Host in each profile and as each kind of user."""
    profile, _, user = request.param.partition("-")
    with host(profile, user == "root") as one:
        report = one.ask(report=True)
        assert report["profile"] == profile, report
        yield one
