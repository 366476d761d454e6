"""load(): a folder of files becomes one resolved Manifest, or one list of everything that is
wrong.
"""

import json
import os
import pathlib
import sys

import pytest

from clawlite.host.base.problems import MAX_SHOWN, ManifestErrors
from clawlite.host.documents import registry, sources
from clawlite.host.manifest import manifest
from clawlite.host.tools import handlers
from clawlite.protocols.mcp.tool_definitions import HINTS

A_CLAW = " - name the file that has kind: Claw"
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
TOOL = """\
claw: 0.3.0
kind: Tool
metadata: {name: %s, version: 1.2.0}
spec:
  description: d
  input_schema: {type: object}
"""


def as_json(**spec) -> dict:
    return {
        "claw": "0.3.0",
        "kind": "Claw",
        "metadata": {"name": "j"},
        "spec": {
            "identity": {"inline": {"personality": "x"}},
            **spec,
            "providers": [
                {
                    "inline": {
                        "protocol": "custom",
                        "endpoint": "builtin:reflex",
                        "model": "r",
                        "auth": {"type": "none"},
                    }
                }
            ],
        },
    }


def project(folder, extra="", **files):
    """Write the minimal manifest with *extra* lines in its spec, and *files* ({name with __ for
    / and . as _yaml}: text).
    """
    (folder / "claw.yaml").write_text(MINIMAL + extra)
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml").replace(
            "_py", ".py"
        ).replace("_toml", ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def problems(folder) -> list:
    """Return the text of each problem, without the folder."""
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(folder)
    return [problem.text().replace(str(folder) + os.sep, "") for problem in caught.value.problems]


def test_the_minimal_manifest_of_section_6(tmp_path):
    found = manifest.load(project(tmp_path))
    assert (found.name, found.version, found.heartbeat_interval_ms) == ("minimal-bot", None, 30000)
    assert found.identity.name == "minimal-bot" and found.identity.spec.autonomy == "observer"
    assert [(p.name, p.uri, p.origin) for p in found.providers] == [
        ("provider-0", "claw://local/provider/provider-0", "inline")
    ]
    assert found.providers[0].where("auth", "type") == (str(tmp_path / "claw.yaml"), 16)
    assert found.providers[0].line("model") == 14 and found.providers[0].file == str(
        tmp_path / "claw.yaml"
    )
    assert found.sources == [("claw.yaml", MINIMAL.encode())]


def test_a_file_a_folder_and_json_are_the_same(tmp_path):
    found = manifest.load(project(tmp_path))
    assert manifest.load(str(tmp_path / "claw.yaml")).identity.spec == found.identity.spec
    (tmp_path / "other.json").write_text(json.dumps(as_json(), indent="\t"))
    assert manifest.load(tmp_path / "other.json").name == "j"


def test_files_globs_and_the_registry_in_order(tmp_path):
    found = manifest.load(
        project(
            tmp_path,
            """\
  tools:
    - ./tools/*.yaml
    - claw://registry/clawlite/adc-read@1.0.0
    - inline: {name: own, description: d, input_schema: {type: object}, metadata: {labels: {category: x}, version: 9.0.0}}
    - claw://local/tool/a@1.2.0
    - claw://tool/own
""",  # noqa: E501
            tools__b_yaml=TOOL % "b",
            tools__a_yaml=TOOL % "a",
            tools__deep__c_yaml=TOOL % "c",
            tools__note="no yaml",
        )
    )
    assert [(tool.name, tool.version, tool.origin) for tool in found.tools] == [
        ("a", "1.2.0", "file"),
        ("b", "1.2.0", "file"),
        ("adc-read", "1.0.0", "registry"),
        ("own", "9.0.0", "inline"),
    ]
    assert found.tools[2].uri == "claw://registry/clawlite/adc-read@1.0.0" and found.tools[
        3
    ].labels == {"category": "x"}
    assert [name for name, _ in found.sources] == [
        "claw.yaml",
        "claw://registry/clawlite/adc-read@1.0.0",
        "tools/a.yaml",
        "tools/b.yaml",
    ]
    assert found.resolve("Tool", "claw://tool/own") is found.tools[3]


def test_two_stars_reach_folders_below(tmp_path):
    found = manifest.load(
        project(
            tmp_path,
            "  tools: ['tools/**/*.yaml']\n",
            tools__b_yaml=TOOL % "b",
            tools__x__y__a_yaml=TOOL % "a",
        )
    )
    assert [tool.name for tool in found.tools] == ["b", "a"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_links_cannot_loop_or_lead_a_glob_out(tmp_path):
    folder = tmp_path / "p"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "a.yaml").write_text(TOOL % "a")
    (folder / "claw.json").write_text(json.dumps(as_json(tools=["./**/*.yaml"])))
    os.symlink("..", folder / "tools" / "up")
    assert [tool.name for tool in manifest.load(folder).tools] == ["a"]
    (tmp_path / "out.yaml").write_text(TOOL % "out")
    os.symlink("../../out.yaml", folder / "tools" / "b.yaml")
    assert "a link out of the manifest's folder" in problems(folder)[0]
    os.remove(folder / "tools" / "b.yaml")
    os.symlink("b.yaml", folder / "tools" / "b.yaml")
    assert [tool.name for tool in manifest.load(folder).tools] == ["a"], (
        "a link to itself is no file"
    )


def test_a_plain_name_leads_out_of_the_folder_where_the_user_allows_it(tmp_path, monkeypatch):
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "tool.yaml").write_text(TOOL % "shared")
    (tmp_path / "robot").mkdir()
    folder = project(tmp_path / "robot", "  tools: [../common/tool.yaml]\n")
    said = problems(folder)
    assert (
        'spec.tools[0]: "../common/tool.yaml" lies outside the manifest\'s folder' in said[0]
        and "--allow-folder" in said[0]
    )
    found = manifest.load(folder, [tmp_path / "common"])
    assert found.tools[0].name == "shared" and found.sources[0][0] == "../common/tool.yaml"
    monkeypatch.setenv("CLAWLITE_ALLOW_FOLDERS", f"/nowhere{os.pathsep}{tmp_path}/common")
    assert manifest.load(folder).tools[0].name == "shared"
    monkeypatch.setenv("CLAWLITE_ALLOW_FOLDERS", f"{tmp_path}/com")
    assert "lies outside" in problems(folder)[0], "the beginning of a name is no folder"


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
@pytest.mark.parametrize("name", ["../other/secret", "link.yaml"])
def test_no_error_quotes_a_file_outside(tmp_path, name):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("root:$6$hash:19000: [0\n")
    (tmp_path / "robot").mkdir()
    os.symlink("../other/secret", tmp_path / "robot" / "link.yaml")
    folder = project(tmp_path / "robot", f"  tools: [{name}]\n")
    said = problems(folder)
    assert len(said) == 1 and "lies outside" in said[0] and "hash" not in said[0]
    os.remove(tmp_path / "other" / "secret")
    assert problems(folder) == said, "nor whether it is there"


def test_versions_of_the_protocol(tmp_path):
    for version, fits in (
        ("0.2.0", True),
        ("0.2.9", True),
        ("0.3.0", True),
        ("0.3.7", True),
        ("0.1.0", False),
        ("0.4.0", False),
        ("1.0.0", False),
        ("0.3", False),
        ("0.3.0-rc1", False),
        ("v0.3.0", False),
    ):
        (tmp_path / "claw.yaml").write_text(MINIMAL.replace('"0.2.0"', f'"{version}"'))
        if fits:
            manifest.load(tmp_path)
        else:
            assert problems(tmp_path) == [
                f'claw.yaml:1: claw: expected a protocol version, "0.2.x" or "0.3.x", found '
                f'"{version}"'
            ], version


@pytest.mark.parametrize(
    "value, fits",
    [
        ("1", True),
        ("45000", True),
        ("0", False),
        ("-1", False),
        ('"30"', False),
        ("true", False),
        ("1.5", False),
    ],
)
def test_the_heartbeat_interval(tmp_path, value, fits):
    text = MINIMAL.replace(
        '"minimal-bot"', f'"minimal-bot"\n  annotations: {{heartbeat_interval_ms: {value}}}'
    )
    (tmp_path / "claw.yaml").write_text(text)
    if fits:
        assert manifest.load(tmp_path).heartbeat_interval_ms == int(value)
    else:
        assert (
            "claw.yaml:5: metadata.annotations.heartbeat_interval_ms: expected a whole number, at "
            "least 1" in problems(tmp_path)[0]
        )


@pytest.mark.parametrize(
    "extra, said",
    [
        ("  tools: [./tols/x.yaml]\n", 'spec.tools[0]: the file "tols/x.yaml" does not exist'),
        (
            "  tools: [./claw.yml]\n",
            'spec.tools[0]: the file "claw.yml" does not exist - did you mean "claw.yaml"?',
        ),
        (
            "  tools: [./claw.yaml]\n",
            'claw.yaml:2: kind: expected "Tool", found "Claw" - the manifest '
            "lists this file under spec.tools",
        ),
        ("  tools: ['./none/*.yaml']\n", 'spec.tools[0]: "./none/*.yaml" matches no file'),
        ("  tools: ['../*.yaml']\n", "leaves the manifest's folder"),
        ("  tools: [/x.yaml]\n", "is no file beside the manifest"),
        ("  tools: [~/x.yaml]\n", "is no file beside the manifest"),
        ("  tools: ['C:\\x.yaml']\n", "is no file name"),
        ("  tools: ['https://a/b.yaml']\n", "is no file beside the manifest"),
        ("  tools: ['.']\n", "is a folder - name the files: ./*.yaml"),
        (
            "  tools: [mcp://x]\n",
            "spec.tools[0]: the mcp:// scheme is reserved and must not be used",
        ),
        ("  tools: [claw://registry/clawlite/adc-read]\n", "always with its version"),
        (
            "  tools: [claw://registry/clawlite/adc-read@0.9.0]\n",
            "has adc-read in version 1.0.0, not 0.9.0 - write adc-read@1.0.0",
        ),
        (
            "  tools: [claw://registry/clawlite/adc-raed@1.0.0]\n",
            'the registry clawlite has no "adc-raed" - did you mean "adc-read"?',
        ),
        ("  tools: [claw://registry/other/x@1.0.0]\n", 'no such registry: "other"'),
        (
            "  skills: [claw://registry/clawlite/adc-read@1.0.0]\n",
            "claw://registry/clawlite/adc-read@1.0.0 is a Tool, not a Skill",
        ),
        (
            "  tools: [claw://local/tool/x]\n",
            "spec.tools[0]: claw://local/tool/x does not exist in this manifest",
        ),
        ("  tools: [claw://policy/x]\n", 'spec.tools[0]: "claw://policy/x" is no Tool'),
        ("  tools: [claw://local/toool/x]\n", "spec.tools[0]: expected a kind: identity, "),
        ("  tools: [{inlin: {}}]\n", 'spec.tools[0].inlin: unknown field - did you mean "inline"?'),
        ("  tools: [{inline: 3}]\n", "spec.tools[0].inline: expected a mapping, found 3"),
        (
            "  tools: [7]\n",
            "spec.tools[0]: expected a file name, a claw:// URI or inline: {...}, found 7",
        ),
        (
            "  tools: x.yaml\n",
            'spec.tools: expected a list, found "x.yaml" - write it as a list item: - ...',
        ),
        (
            "  memory:\n",
            "spec.memory: expected a file name, a claw:// URI or inline: {...}, found "
            "nothing (null)",
        ),
        (
            "  memory: './*.yaml'\n",
            "spec.memory: one Memory stands here, not a glob - name one file",
        ),
        ("  polices: []\n", 'spec.polices: unknown field - did you mean "policies"?'),
        (
            "  sandbox: {inline: {level: wams}}\n",
            'spec.sandbox.inline.level: expected "container", '
            '"none", "process", "vm" or "wasm", found "wams"'
            ' - did you mean "wasm"?',
        ),
        (
            "  sandbox: {inline: {spec: {level: none}}}\n",
            "inline takes the fields of the spec themselves, without spec:",
        ),
        (
            "  sandbox: {inline: {level: none, capabilities: {shell: {blocked_patterns: "
            "['(']}}}}\n",
            'capabilities.shell.blocked_patterns[0]: "(" is no regular expression',
        ),
        (
            "  tools: [{inline: {mcp_source: {uri: mcp://x}}}]\n",
            "spec.tools[0].inline.mcp_source.uri: the mcp:// scheme is reserved",
        ),
        (
            "  tools: [{inline: {mcp_source: {uri: http://far.example/x}}}]\n",
            "http:// is for this machine only",
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {type: string}}}]\n",
            'input_schema.type: expected "object", found "string"',
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {type: objet}}}]\n",
            'expected "object", found "objet" - did you mean "object"?',
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {required: true}}}]\n",
            "required is a list beside properties",
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {}, annotations: {readOnlyHint: "
            "'yes'}}}]\n",
            'annotations.readOnlyHint: expected true or false, found "yes"',
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {}, annotations: {readonlyhint: "
            "true}}}]\n",
            'did you mean "readOnlyHint"?',
        ),
        (
            "  tools: [{inline: {description: d, input_schema: {}, timeout_ms: 1.5}}]\n",
            "timeout_ms: expected a whole number, at least 0, found 1.5",
        ),
        (
            "  tools: [{inline: {name: a, metadata: {name: b}, description: d, input_schema: "
            "{}}}]\n",
            "the name is here and in metadata",
        ),
        (
            "  telemetry: {inline: {exporters: [{type: otlp}]}}\n",
            '"endpoint" is missing; an exporter of type "otlp" needs it',
        ),
        (
            "  telemetry: {inline: {exporters: [{type: file}], sampling: {rate: 1.5}}}\n",
            '"path" is missing; an exporter of type "file" needs it',
        ),
        (
            "  telemetry: {inline: {exporters: [{type: console}], sampling: {rate: 1.5}}}\n",
            "rate: expected a number from 0 to 1, found 1.5",
        ),
        (
            "  channels: [{inline: {type: cron, transport: stdio, auth: {secret_ref: S}, trigger: "
            "{}}}]\n",
            '"schedule" is missing; type "cron" needs it',
        ),
        (
            "  policies: [{inline: {rules: [{id: a, action: allow, scope: all, match: {nam: "
            "x}}]}}]\n",
            'match.nam: unknown field - did you mean "name"?',
        ),
        (
            "  policies: [{inline: {rules: [{id: a, action: allow, scope: all, conditions: "
            "{time_of_day: "
            "x}}]}}]\n",
            "conditions.time_of_day: unknown field - known here: path_within",
        ),
        (
            "  policies: [{inline: {rules: []}}]\n",
            "spec.policies[0].inline.rules: the list is empty",
        ),
        (
            "  memory: {inline: {stores: [{name: a, type: semantic}, {name: a, type: "
            "semantic}]}}\n",
            'a store "a" is already there',
        ),
        (
            "  memory: {inline: {stores: [{name: a, type: semantic, embedding: {provider_ref: x, "
            "model: "
            "m, dimensions: 3}}]}}\n",
            'embedding.provider_ref: there is no Provider "x" - there is "provider-0"',
        ),
        (
            "  swarm: {inline: {topology: pipeline, agents: [{identity_ref: "
            "'claw://local/tool/x', role: "
            "r}], coordination: {message_passing: direct, "
            "backend: nats, concurrency: {}}, aggregation: {strategy: merge}}}\n",
            'agents[0].identity_ref: "claw://local/tool/x" is no Identity',
        ),
        (
            "  world_models: [{inline: {paradigm: hybrid, backend: {type: tool, ref: x}}}]\n",
            'backend.ref: there is no Tool "x"',
        ),
        (
            "  tools: ['claw://registry/clawlite/sleep@1.0.0', {inline: {name: t, description: d, "
            "policy_ref: 'claw://registry/clawlite/sleep@1.0.0'}}]\n",
            "is a Tool, not a Policy",
        ),
        (
            "  skills: [{inline: {description: d, instruction: i, tools_required: [read_flie]}}]\n",
            'there is no Tool "read-flie"',
        ),
        (
            "  skills: [{inline: {description: d, instruction: i, tools_required: ['read-*']}}]\n",
            'no Tool has a name like "read-*"',
        ),
        (
            "  tools: [{inline: {name: t, description: d, composite: true, skill_ref: s}}]\n"
            "  skills: [{inline: {name: s, description: d, instruction: i, "
            "tools_required: ['*']}}]\n",
            "this chain comes back to its start",
        ),
    ],
)
def test_one_mistake(tmp_path, extra, said):
    found = [line for line in problems(project(tmp_path, extra)) if said in line]
    assert len(found) == 1, problems(tmp_path)
    assert found[0].startswith("claw.yaml:")


@pytest.mark.parametrize(
    "extra",
    [
        "  policies: [{inline: {rules: [{id: a, action: allow, scope: skill, match: {name: "
        "'read-*', "
        "labels: {a: b}}}]}}]\n",
        "  channels: [{inline: {type: cron, transport: stdio, auth: {secret_ref: S}}}]\n",
        "  tools: [{inline: {mcp_source: {uri: 'http://127.0.0.1:8000/mcp'}}}]\n",
        "  tools: [{inline: {description: d, input_schema: {}, timeout_ms: 5.0, annotations: "
        "{vendorHint: 1}}}]\n",
        "  tools: [claw://registry/clawlite/digital-read@1.0.0]\n"
        "  skills: [{inline: {description: d, instruction: i, tools_required: [digital_read, "
        "'claw://registry/clawlite/digital-read@1.0.0']}}]\n",
        "  memory: {inline: {name: m, stores: [{name: s, type: checkpoint}]}}\n"
        "  world_models: [{inline: {paradigm: hybrid, memory_ref: s, backend: {type: custom, ref: "
        "any}}}, "
        "{inline: {paradigm: hybrid, memory_ref: m, backend: {type: provider, ref: "
        "'claw://provider/provider-0'}}}]\n",
    ],
)
def test_what_is_valid(tmp_path, extra):
    manifest.load(project(tmp_path, extra))


def provider(name, *fallback):
    chain = ", ".join(f"{{provider_ref: {ref}}}" for ref in fallback)
    return (
        f"    - inline: {{name: {name}, protocol: custom, endpoint: 'x:y', model: m, auth: "
        f"{{type: none}}, "
        f"fallback: [{chain}]}}\n"
    )


def test_a_fallback_chain_must_end(tmp_path):
    said = problems(
        project(
            tmp_path,
            provider("a", "b") + provider("b", "c") + provider("c", "a") + provider("d", "d", "a"),
        )
    )
    assert said == [
        "claw.yaml:19: spec.providers[3].inline.fallback[0].provider_ref: this chain "
        "comes back to its start: a -> b -> c -> a - leave one of them out",
        "claw.yaml:20: spec.providers[4].inline.fallback[0].provider_ref: this chain "
        "comes back to its start: d -> d - leave one of them out",
    ]
    assert (
        manifest.load(
            project(tmp_path, provider("a", "b", "c") + provider("b", "c") + provider("c"))
        )
        .providers[1]
        .name
        == "a"
    )


def test_a_composite_tool_must_not_need_itself(tmp_path):
    said = problems(
        project(
            tmp_path,
            """\
  tools: [{inline: {name: t, description: d, input_schema: {}, composite: true, skill_ref: s}}]
  skills: [{inline: {name: s, description: d, instruction: i, tools_required: [t]}}]
""",
        )
    )
    assert len(said) == 1 and "comes back to its start" in said[0]


def test_names_are_unique_in_a_kind_and_both_places_are_named(tmp_path):
    said = problems(
        project(
            tmp_path,
            "  tools: [./a.yaml, ./b.yaml, './*.yml']\n",
            a_yaml=TOOL % "same",
            b_yaml=TOOL % "same",
            **{"c.yml": TOOL % "same"},
        )
    )
    assert said == [
        'b.yaml:3: metadata.name: a Tool "same" is already declared (a.yaml:3) - '
        "names are unique within a kind",
        'c.yml:3: metadata.name: a Tool "same" is already declared (a.yaml:3) - names '
        "are unique within a kind",
    ]


def test_every_mistake_of_every_file_at_once(tmp_path):
    said = problems(
        project(
            tmp_path,
            "  tools: ['*.tool.yaml', ./gone.yaml]\n  sandbox: ./sandbox.yaml\n",
            **{
                "a.tool.yaml": (TOOL % "a") + "  sandbox_ref: other\n  timeout: 5\n",
                "b.tool.yaml": "a: [",
                "sandbox_yaml": "claw: 0.3.0\nkind: Sandbox\n",
            },
        )
    )
    assert [line.split(": ", 1)[0] for line in said] == [
        "a.tool.yaml:8",
        "b.tool.yaml:1",
        "claw.yaml:17",
        "sandbox.yaml:1",
        "sandbox.yaml:1",
    ]
    assert 'did you mean "timeout_ms"?' in said[0]
    assert not any("sandbox_ref" in line for line in said), (
        "the sandbox that cannot be read is not also missing"
    )


def test_a_field_of_metadata_may_be_unknown_but_not_misspelt(tmp_path):
    (tmp_path / "claw.yaml").write_text(
        MINIMAL.replace("metadata:\n", "metadata:\n  author: someone\n")
    )
    manifest.load(tmp_path)
    (tmp_path / "claw.yaml").write_text(
        MINIMAL.replace("metadata:\n", "metadata:\n  lables: {a: b}\n")
    )
    assert problems(tmp_path) == [
        'claw.yaml:4: metadata.lables: unknown field - did you mean "labels"?'
    ]


def test_errors_as_json(tmp_path):
    project(tmp_path, "  polices: []\n")
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(tmp_path)
    error = caught.value.to_json()
    assert error["code"] == -32060 and json.loads(json.dumps(error)) == error
    assert error["data"]["problems"] == [
        {
            "file": str(tmp_path / "claw.yaml"),
            "line": 17,
            "path": "spec.polices",
            "message": "unknown field",
            "expected": "",
            "found": "",
            "hint": 'did you mean "policies"?',
        }
    ]


def test_a_thousand_mistakes_are_cut(tmp_path):
    project(tmp_path, "".join(f"  field{i}: 1\n" for i in range(1000)))
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(tmp_path)
    assert (
        len(caught.value.problems) == 1000 and len(str(caught.value).splitlines()) == MAX_SHOWN + 1
    )
    assert str(caught.value).endswith("... and 900 more")


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "claw.yaml:1: expected a Claw document, found an empty file" + A_CLAW),
        ("[]", "claw.yaml:1: expected a Claw document, found a list" + A_CLAW),
        ("a", 'claw.yaml:1: expected a Claw document, found "a"' + A_CLAW),
        (
            "a: [",
            "claw.yaml:1: a value is missing here - close what is open, or put the text in quotes",
        ),
        (
            "\0",
            "claw.yaml:1: a control character, U+0000 - remove it, or write it as an escape in "
            "double quotes",
        ),
    ],
)
def test_a_root_that_is_none(tmp_path, text, said):
    (tmp_path / "claw.yaml").write_text(text)
    assert problems(tmp_path) == [said]


def test_a_missing_manifest_is_one_problem(tmp_path):
    (tmp_path / "clwa.yaml").write_text("")
    with pytest.raises(
        ManifestErrors, match='there is no claw.yaml in this folder - did you mean "clwa.yaml"?'
    ):
        manifest.load(tmp_path)
    with pytest.raises(ManifestErrors, match="does not exist"):
        manifest.load(tmp_path / "claw.yaml")


def test_a_claw_yaml_that_is_no_file_is_not_suggested(tmp_path):
    (tmp_path / "claw.yaml").mkdir()
    with pytest.raises(ManifestErrors, match="there is no claw.yaml in this folder - name the"):
        manifest.load(tmp_path)


def test_later_stages_add_problems_with_their_place(tmp_path):
    found = manifest.load(project(tmp_path))
    found.problems.raise_all()
    found.problem(found.providers[0], ("auth", "type"), "not on this board", hint="use another")
    found.problem(found.identity, ("autonomy",), "", '"supervised"', '"observer"', key=True)
    with pytest.raises(ManifestErrors) as caught:
        found.problems.raise_all()
    assert str(caught.value).replace(str(tmp_path) + os.sep, "").splitlines() == [
        'claw.yaml:9: spec.identity.inline.autonomy: expected "supervised", found "observer"',
        "claw.yaml:16: spec.providers[0].inline.auth.type: not on this board - use another",
    ]


def test_tools_py_answers_the_tools_of_its_names(tmp_path):
    found = manifest.load(
        project(
            tmp_path,
            "  tools: [./water.yaml]\n",
            water_yaml=(TOOL % "water-plants").replace(
                "{type: object}",
                "{type: object, properties: {ms: {type: integer}}, required: [ms]}",
            ),
            tools_py='def extra(n: int = 1):\n    "E."\n\ndef water_plants(board, ms: int):\n    '
            '"W."\n    yield 1\n',
        )
    )
    assert [
        (tool.name, tool.spec.description, tool.function.function, tool.origin)
        for tool in found.tools
    ] == [("water-plants", "d", "water_plants", "file"), ("extra", "E.", "extra", "function")]
    assert found.tools[1].where("input_schema") == (str(tmp_path / "tools.py"), 1)
    assert ("tools.py" in dict(found.sources)) and [f.is_generator for f in found.functions] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    "schema, said",
    [
        (
            "{type: object, properties: {sm: {}, ms: {}}, required: [ms]}",
            "water.yaml:6: spec.input_schema.properties.sm: the function water (tools.py:1) has no "
            'parameter "sm" - did you mean "ms"?',
        ),
        (
            "{type: object, properties: {ms: {}}}",
            'water.yaml:6: spec.input_schema.required: the function water (tools.py:1) needs "ms" '
            "- list "
            "it under required, or give the parameter a default",
        ),
    ],
)
def test_the_schema_must_fit_the_function(tmp_path, schema, said):
    project(
        tmp_path,
        "  tools: [./water.yaml]\n",
        water_yaml=(TOOL % "water").replace("{type: object}", schema),
        tools_py='def water(ms: int):\n    "W."\n',
    )
    assert problems(tmp_path) == [said]


def test_a_tool_that_nothing_answers(tmp_path):
    project(
        tmp_path,
        "  tools: [./water.yaml, 'claw://registry/clawlite/adc-read@1.0.0', "
        "{inline: {mcp_source: {uri: 'stdio:///bin/x'}}}]\n",
        water_yaml=TOOL % "water",
    )
    found = manifest.load(tmp_path)
    handlers.missing(found.tools, found.functions, found.problems)
    with pytest.raises(ManifestErrors) as caught:
        found.problems.raise_all()
    assert str(caught.value).endswith(
        'water.yaml:5: spec: nothing answers the tool "water" - write def water(...) in tools.py'
    )
    (tmp_path / "tools.py").write_text('def wather():\n    "W."\n')
    assert "did you mean" in problems(tmp_path)[0], "with a tools.py it is a mistake at once"


@pytest.mark.parametrize(
    "tools_py, said",
    [
        ('def water(ms: complex):\n    "W."\n', ["annotation"]),
        ("def water(:\n", ["not Python"]),
        ('def wet(ms: complex):\n    "W."\n', ["annotation", "nothing answers"]),
    ],
)
def test_a_function_with_a_mistake_is_not_also_missing(tmp_path, tools_py, said):
    project(tmp_path, "  tools: [./water.yaml]\n", water_yaml=TOOL % "water", tools_py=tools_py)
    found = problems(tmp_path)
    assert len(found) == len(said) and all(word in line for word, line in zip(said, found))


def test_a_function_cannot_replace_a_tool_of_the_registry(tmp_path):
    project(
        tmp_path,
        "  tools: ['claw://registry/clawlite/adc-read@1.0.0']\n",
        tools_py='def adc_read(pin: str):\n    "A."\n',
    )
    assert "comes from the registry" in problems(tmp_path)[0]


def test_the_registry_of_the_package(tmp_path):
    assert registry.names() == [
        "adc-read",
        "add-rule",
        "board-info",
        "delegate",
        "digital-read",
        "digital-write",
        "edit-file",
        "exec-shell",
        "forget-rule",
        "i2c-transfer",
        "list-directory",
        "list-rules",
        "memory-read",
        "memory-write",
        "message",
        "one-wire-read",
        "pwm-write",
        "read-file",
        "remind",
        "sleep",
        "spawn",
        "spi-transfer",
        "web-fetch",
        "web-search",
        "write-file",
    ]
    lines = "".join(f"    - claw://registry/clawlite/{name}@1.0.0\n" for name in registry.names())
    found = manifest.load(project(tmp_path, "  tools:\n" + lines))
    assert {tool.labels["category"] for tool in found.tools} == {
        "bus",
        "filesystem",
        "hardware",
        "memory",
        "messaging",
        "network",
        "rules",
        "shell",
        "swarm",
    }
    assert [tool.name for tool in found.tools if tool.spec.annotations["readOnlyHint"]] == [
        "adc-read",
        "board-info",
        "digital-read",
        "list-directory",
        "list-rules",
        "memory-read",
        "one-wire-read",
        "read-file",
        "sleep",
        "web-search",
    ]
    assert all(set(tool.spec.annotations) == set(HINTS) for tool in found.tools)
    assert all(tool.spec.input_schema["additionalProperties"] is False for tool in found.tools)
    handlers.missing(found.tools, found.functions, found.problems)
    found.problems.raise_all()


def test_the_same_folder_gives_the_same_manifest(tmp_path):
    names = [chr(97 + i % 26) + str(i) for i in range(60)]
    project(
        tmp_path,
        "  tools: ['t/*.yaml']\n",
        **{f"t__{name}_yaml": TOOL % name for name in reversed(names)},
    )
    first, second = manifest.load(tmp_path), manifest.load(pathlib.Path(os.path.relpath(tmp_path)))
    assert (
        [tool.name for tool in first.tools] == sorted(names) == [tool.name for tool in second.tools]
    )
    assert first.sources == second.sources


def _calls_of_load(folder, tools: int) -> int:
    """Return how many functions are called while a manifest with so many files is loaded."""
    folder.mkdir()
    project(
        folder, "  tools: ['t/*.yaml']\n", **{f"t__n{i}_yaml": TOOL % f"n{i}" for i in range(tools)}
    )
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        loaded = manifest.load(folder)
    finally:
        sys.setprofile(None)
    assert len(loaded.tools) == tools
    return count


def test_a_large_manifest_takes_no_time_that_grows_with_its_square(tmp_path):
    _calls_of_load(tmp_path / "warm", 2)  # what is imported at the first one
    some, more = (_calls_of_load(tmp_path / str(count), count) for count in (50, 200))
    assert more < 6 * some, "four times as many files: four times the work"


def test_the_number_of_files_and_of_entries_looked_at_is_bounded(tmp_path, monkeypatch):
    project(
        tmp_path, "  tools: ['t/*.yaml']\n", **{f"t__n{i}_yaml": TOOL % f"n{i}" for i in range(9)}
    )
    # the root is one of the ten files
    for bound, fits in ((9, False), (10, True), (11, True)):
        monkeypatch.setattr(sources, "MAX_FILES", bound)
        assert fits or problems(tmp_path) == [
            f"claw.yaml:17: spec.tools[0]: more than {bound} files - name fewer files, or join some"
        ]
        assert not fits or manifest.load(tmp_path)
    for bound, fits in ((8, False), (9, True), (10, True)):
        monkeypatch.setattr(sources, "MAX_SCANNED", bound)
        assert fits or f"looks at more than {bound} files" in problems(tmp_path)[0]
        assert not fits or manifest.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_no_file_and_does_not_hang(tmp_path):
    os.mkfifo(project(tmp_path, "  tools: [./pipe]\n") / "pipe")
    assert problems(tmp_path) == [
        'claw.yaml:17: spec.tools[0]: "pipe" is not a regular file - copy '
        "its content into a file, and name that"
    ]


@pytest.mark.parametrize("word", ["True", "yes", '"true"', "1"])
def test_a_rule_that_could_never_match_a_hint_is_refused(tmp_path, word):
    (tmp_path / "claw.yaml").write_text(f"""claw: "0.3.0"
kind: Claw
metadata: {{ name: a }}
spec:
  identity: {{ inline: {{ personality: p }} }}
  providers: [{{ inline: {{ protocol: custom, endpoint: "builtin:reflex", model: m, auth: {{ type: none }} }} }}]
  policies:
    - inline:
        rules: [{{ id: r, action: deny, scope: tool, match: {{ annotations: {{ destructiveHint: {word} }} }} }}]
""")  # noqa: E501
    with pytest.raises(ManifestErrors) as refused:
        manifest.load(tmp_path)
    assert (
        "annotations.destructiveHint: such a rule could never match, expected true or false"
        in str(refused.value)
    )


def test_no_hint_leads_to_what_is_refused(tmp_path):
    """``mcp_source`` is valid CKP, and refused where it is used: whoever follows a hint meets no
    second refusal.
    """
    project(tmp_path, "  tools: [mcp://x]\n")
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(tmp_path)
    hints = [problem.hint for problem in caught.value.problems]
    assert hints and all(hint and "mcp_source" not in hint for hint in hints), hints
