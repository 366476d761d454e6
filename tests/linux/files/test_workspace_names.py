"""What is hidden is hidden by each name that mounts give it."""

from sandboxes import profile

from clawlite.linux.files.mounts import Table
from clawlite.linux.files.workspace import paths_to_hide
from clawlite.protocols.sandbox.profile import FULL

ROWS = """22 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw
23 22 0:21 / /proc rw - proc proc rw
24 22 179:1 / /boot rw - vfat /dev/mmcblk0p1 rw
25 22 0:40 /@home /home rw - btrfs /dev/sda rw
26 22 0:40 / /mnt/all rw - btrfs /dev/sda rw
27 22 0:40 /@home/pi /srv/of\\040pi rw - btrfs /dev/sda rw
28 22 0:40 /@home/pi2 /srv/pi2 rw - btrfs /dev/sda rw
29 22 179:2 /var /mnt/var rw - ext4 /dev/root rw
"""


def also_at(path: str, table: str, but=None) -> list:
    made = Table(table)
    try:
        return made.other_names([path], but)
    finally:
        made.close()


def test_names(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(ROWS)
    assert also_at("/home/pi/agents", str(table)) == [
        "/mnt/all/@home/pi/agents",
        "/srv/of pi/agents",
    ]
    assert also_at("/home/pi", str(table)) == ["/mnt/all/@home/pi", "/srv/of pi"]
    assert also_at("/mnt/all/@home/pi2/x", str(table)) == ["/home/pi2/x", "/srv/pi2/x"]
    assert (
        also_at("/var/no/such", str(table)) == ["/mnt/var/no/such"]
        and also_at("/no/such", str(table)) == []
    )
    assert also_at("/boot/x", str(table)) == [] and also_at("/x", str(tmp_path / "none")) == []


def test_parts_and_what_is_mounted_in_it(tmp_path):
    table = tmp_path / "mountinfo"
    # nothing is there
    table.write_text(ROWS.replace("/home", "/elsewhere").replace("/srv", "/served"))
    assert also_at("/elsewhere", str(table)) == ["/mnt/all/@home", "/served/of pi", "/served/pi2"]
    # but for what is in a folder, by whatever name
    assert also_at("/elsewhere", str(table), "/elsewhere/pi") == ["/mnt/all/@home", "/served/pi2"]
    assert also_at("/served", str(table)) == [
        "/elsewhere/pi",
        "/mnt/all/@home/pi",
        "/elsewhere/pi2",
        "/mnt/all/@home/pi2",
    ]
    assert also_at("/served", str(table), "/served/pi2") == ["/elsewhere/pi", "/mnt/all/@home/pi"]
    assert also_at("/", str(table)) == []  # everything lies in it


def test_overlays(tmp_path):
    for name in ("low:er", "upper", "merged"):
        (tmp_path / name / "a").mkdir(parents=True)
    table, low = tmp_path / "mountinfo", str(tmp_path / "low:er")
    table.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / %s rw - overlay overlay "
        "rw,lowerdir=%s:/none:rel,upperdir=%s,workdir=/w\n"
        % (tmp_path / "merged", low.replace(":", "\\134:"), tmp_path / "upper")
    )
    assert (
        also_at(low + "/a", str(table))
        == also_at(str(tmp_path / "upper/a"), str(table))
        == [str(tmp_path / "merged/a")]
    )
    assert also_at(str(tmp_path / "merged/a"), str(table)) == [
        low + "/a",
        str(tmp_path / "upper/a"),
    ]
    # a layer is not what is made of it; nothing there
    assert also_at(low, str(table)) == also_at(low + "/b", str(table)) == []


def test_below_another_root(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(
        "".join(
            line.replace(" / rw,noatime", " /old rw,noatime")
            .replace(" /srv", " /old/srv")
            .replace(" /home rw", " /old/home rw")
            + "\n"
            for line in ROWS.splitlines()
        )
    )
    made = Table(str(table), "/old")
    assert made.other_names(["/home/pi"]) == ["/srv/of pi"] and made.other_names(
        ["/srv/pi2/x"]
    ) == ["/home/pi2/x"]
    made.close()


def test_what_is_mounted_over_is_no_name(tmp_path):
    for name in ("a/x", "b/x"):
        (tmp_path / name).mkdir(parents=True)
    table = tmp_path / "mountinfo"
    table.write_text(
        "1 0 8:1 %s %s rw\n2 0 8:1 %s %s rw\n"
        % (tmp_path / "a", tmp_path / "a", tmp_path / "a", tmp_path / "b")
    )
    assert also_at(str(tmp_path / "a" / "x"), str(table)) == []
    (tmp_path / "b" / "x").rmdir()
    (tmp_path / "b").rmdir()
    (tmp_path / "b").symlink_to("a")
    assert also_at(str(tmp_path / "a" / "x"), str(table)) == [str(tmp_path / "b" / "x")]


def test_the_state_behind_a_second_mount(tmp_path):
    state, other = tmp_path / "home" / "agents" / "a", tmp_path / "other"
    state.mkdir(parents=True)
    other.mkdir()
    assert paths_to_hide(profile(files=FULL, mounts=[]), str(state), str(state / "workspace")) == [
        str(state.parent)
    ]
    table = tmp_path / "mountinfo"
    table.write_text("1 0 8:1 / / rw\n2 0 8:1 %s %s rw\n" % (tmp_path / "home", other))
    other.rmdir()
    other.symlink_to("home")
    assert also_at(str(state.parent), str(table)) == [str(other / "agents")]
