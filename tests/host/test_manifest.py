"""load(): a folder of files becomes one resolved Manifest."""
import pytest

from clawlite.host import manifest
from clawlite.host.problems import ManifestErrors

MINIMAL = """\
claw: "0.2.0"
kind: Claw
metadata:
  name: "minimal-bot"
spec:
  identity:
    inline:
      personality: "You are a helpful assistant."
      autonomy: "observer"
  providers:
    - inline:
        protocol: "openai-compatible"
        endpoint: "http://localhost:11434/v1"
        model: "llama3"
        auth:
          type: "none"
"""


def test_the_minimal_manifest_of_section_6(tmp_path):
    (tmp_path / "claw.yaml").write_text(MINIMAL)
    found = manifest.load(tmp_path)
    assert (found.name, found.version, found.heartbeat_interval_ms) == ("minimal-bot", None, 30000)
    assert found.identity.name == "identity-0" and found.identity.spec.autonomy == "observer"
    assert [p.name for p in found.providers] == ["provider-0"]
    assert found.where(found.providers[0], "auth", "type") == (str(tmp_path / "claw.yaml"), 16)
    assert found.sources == [("claw.yaml", MINIMAL.encode())]


def test_a_missing_manifest_is_one_problem(tmp_path):
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(tmp_path / "claw.yaml")
    assert "does not exist" in str(caught.value) and caught.value.code == -32060
