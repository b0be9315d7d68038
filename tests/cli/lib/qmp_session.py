"""The session of conformance.t: (label or None, command, arguments), and what is meant to differ."""

# Never the same: time, and what only the engine accounts for.
IGNORED = {"rd_total_time_ns", "wr_total_time_ns", "flush_total_time_ns", "unmap_total_time_ns", "idle_time_ns"}

# Why: (label of the step or "*", pattern of the path in [answer, events]).
INTENDED = {
    "nodes count what they read, the first sector of a disk among it": ("*", r"/0/return/\d/(parent/)?stats/rd_(bytes|operations)"),
    "the medium's insertion into a disk names the disk": ("insert-hd", r"/0/error/desc"),
    "a file that cannot be read is told of in short": ("no-file", r"/0/error/desc"),
    "a secret shows nothing of itself but its type": ("secret", r"/0/(return|error)"),
    "limits are shown as one property, not also one by one": ("group", r"/0/return"),
    "a drive's bus is no object": ("bus", r"/0/(return|error)"),
    "a drive has an identity of its own": ("identity", r"/0/return"),
    "a geometry that was not given shows as 0": ("geometry", r"/0/return"),
    "the description of a translation": ("hd-properties", r"/0/return/3/description"),
    "a file is named by its name, whatever the node's other options": ("slice", r"/0/return/0/(file|image/filename)"),
    "a null node is no different from others": ("null", r"/0/return/0/(file|image/(actual-size|dirty-flag|filename|limits/min-mem-alignment))"),
    "a raw image of no given format is read in bytes": ("probed", r"/0/return/0/inserted/image/limits/request-alignment"),
    "a SATA port takes a drive while the machine runs": ("plug", r"/0/(return|error)"),
    "and lets go of it": ("unplug", r"/0/(return|error)|/1"),
    "the human monitor knows drives by their devices' names, too": ("by-device", r"/0/return|/1"),
    "the human monitor tells of no idle time": ("hmp-stats", r"/0/return"),
}

ANON = "/machine/peripheral-anon/device[0]"
OFF = {"bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0}


def hmp(line, label=None):
    return label, "human-monitor-command", {"command-line": line}


def step(name, arguments=None, label=None, **more):
    arguments = dict(arguments or {}, **more)
    return label, name, arguments or None


QUERIES = (
    step("query-block"), step("query-block", {"flat": True}), step("query-blockstats"), step("query-blockstats", {"query-nodes": True}),
    step("query-named-block-nodes"), step("query-named-block-nodes", {"flat": True}), step("query-block-exports"),
    step("query-name"), step("query-uuid"), step("query-status"), step("query-fdsets"))

WRONG = (
    step("query-block", {"x": 1}), step("nonsense"), step("query-blockstats", {"query-nodes": 5}), step("eject", {"id": 5}),
    step("eject"), step("eject", {"id": "cd0", "device": "cd0"}), step("eject", {"id": "none"}), step("eject", {"device": "none"}),
    step("eject", {"id": "hd0"}), step("eject", {"id": "hd0", "force": True}), step("eject", {"id": "cd0", "force": "yes"}),
    step("blockdev-open-tray", {"id": "hd0"}), step("blockdev-close-tray", {"id": "hd0"}), step("blockdev-open-tray"),
    step("blockdev-remove-medium", {"id": "hd0"}), step("blockdev-remove-medium", {"id": "cd0"}), step("blockdev-remove-medium"),
    step("blockdev-insert-medium", {"id": "cd0", "node-name": "none"}), step("blockdev-insert-medium", {"id": "hd0", "node-name": "f0"}, label="insert-hd"),
    step("blockdev-insert-medium", {"id": "cd0"}), step("blockdev-insert-medium", {"id": "cd0", "node-name": "n0"}),
    step("blockdev-change-medium", {"id": "cd0"}), step("blockdev-change-medium", {"id": "cd0", "filename": "none.iso"}),
    step("blockdev-change-medium", {"id": "cd0", "filename": "b.iso", "format": "none"}),
    step("blockdev-change-medium", {"id": "cd0", "filename": "b.iso", "read-only-mode": "none"}),
    step("blockdev-change-medium", {"id": "none", "filename": "b.iso"}), step("blockdev-change-medium", {"id": "hd0", "filename": "b.iso"}),
    step("blockdev-change-medium", {"id": "cd0", "filename": "b.iso", "color": "red"}))

TRAY = (
    step("blockdev-close-tray", {"id": "cd0"}), step("blockdev-open-tray", {"id": "cd0"}), step("blockdev-open-tray", {"id": "cd0"}),
    step("query-block"), step("blockdev-del", {"node-name": "n0"}), step("blockdev-remove-medium", {"id": "cd0"}),
    step("blockdev-remove-medium", {"id": "cd0"}), step("query-block"), step("query-blockstats"),
    step("blockdev-del", {"node-name": "n0"}), step("blockdev-del", {"node-name": "n0"}), step("blockdev-del", {"node-name": "f0"}),
    step("blockdev-add", {"driver": "file", "filename": "b.iso", "node-name": "f1", "auto-read-only": True, "discard": "unmap"}),
    step("blockdev-add", {"driver": "raw", "file": "f1", "node-name": "n1", "read-only": True}),
    step("blockdev-insert-medium", {"id": "cd0", "node-name": "n1"}),
    step("blockdev-insert-medium", {"id": "cd0", "node-name": "n1"}),
    step("blockdev-insert-medium", {"id": ANON, "node-name": "n1"}),
    step("blockdev-close-tray", {"id": "cd0"}), step("blockdev-close-tray", {"id": "cd0"}), step("query-block"),
    step("blockdev-open-tray", {"id": "cd0", "force": True}), step("blockdev-close-tray", {"id": "cd0"}),
    step("eject", {"id": "cd0"}), step("eject", {"id": "cd0"}), step("query-block"),
    step("blockdev-insert-medium", {"id": "cd0", "node-name": "n1"}), step("blockdev-close-tray", {"id": "cd0"}),
    step("blockdev-change-medium", {"id": "cd0", "filename": "a.iso"}), step("query-block", label="probed"),
    step("blockdev-change-medium", {"id": "cd0", "filename": "b.iso", "format": "raw", "read-only-mode": "read-only"}),
    step("query-block"), step("query-named-block-nodes"), step("blockdev-del", {"node-name": "n1"}),
    step("blockdev-del", {"node-name": "f1"}),
    step("blockdev-change-medium", {"id": ANON, "filename": "a.iso"}), step("eject", {"id": ANON}),
    step("blockdev-close-tray", {"id": ANON}), step("blockdev-close-tray", {"id": ANON}))

NODES = (
    step("blockdev-add", {"driver": "none", "node-name": "x"}), step("blockdev-add", {"node-name": "x"}),
    step("blockdev-add", {"driver": "file", "filename": "a.iso"}), step("blockdev-add", {"driver": "file", "node-name": "x"}),
    step("blockdev-add", {"driver": "file", "node-name": "x", "filename": "none"}),
    step("blockdev-add", {"driver": "file", "node-name": "x", "filename": "a.iso", "color": "red"}),
    step("blockdev-add", {"driver": "file", "node-name": "x", "filename": 5}),
    step("blockdev-add", {"driver": "file", "node-name": "x", "filename": "a.iso", "read-only": "yes"}),
    step("blockdev-add", {"driver": "file", "node-name": "nd", "filename": "a.iso"}),
    step("blockdev-add", {"driver": "file", "node-name": "1x", "filename": "a.iso"}),
    step("blockdev-add", {"driver": "file", "node-name": "x" * 40, "filename": "a.iso"}),
    step("blockdev-add", {"driver": "raw", "node-name": "x"}), step("blockdev-add", {"driver": "raw", "node-name": "x", "file": "none"}),
    step("blockdev-add", {"driver": "raw", "node-name": "x", "file": {"driver": "file", "filename": "none"}}),
    step("blockdev-add", {"driver": "raw", "node-name": "x", "file": {"driver": "file", "filename": "a.iso", "color": 1}}),
    step("blockdev-add", {"driver": "raw", "node-name": "x", "read-only": True, "file": {"driver": "file", "filename": "a.iso"}}),
    step("query-named-block-nodes"), step("blockdev-del", {"node-name": "x"}),
    step("blockdev-add", {"driver": "raw", "node-name": "x", "offset": 2048, "size": 4096, "read-only": True,
                          "file": {"driver": "file", "filename": "a.iso"}}),
    step("query-named-block-nodes", label="slice"), step("blockdev-del", {"node-name": "x"}),
    step("blockdev-add", {"driver": "null-co", "node-name": "z", "size": 65536}), step("query-named-block-nodes", label="null"),
    step("block_resize", {"node-name": "z", "size": 131072}), step("blockdev-del", {"node-name": "z"}),
    step("blockdev-add", {"driver": "file", "node-name": "x", "filename": "b.iso", "read-only": True,
                          "cache": {"direct": False, "no-flush": True}, "detect-zeroes": "on"}),
    step("query-named-block-nodes"), step("blockdev-del", {"node-name": "x"}),
    *[step("blockdev-reopen", {"options": o}) for o in (
        [{"driver": "raw", "node-name": "n0", "file": "f0", "read-only": True}], [{"driver": "raw", "node-name": "none", "file": "f0"}],
        [{"driver": "file", "node-name": "n0", "filename": "a.iso"}], [{"driver": "raw", "file": "f0"}], [{"node-name": "n0", "file": "f0"}],
        [5], "x", [{"driver": "raw", "node-name": "n0", "file": "f0", "read-only": "yes"}],
        [{"driver": "file", "node-name": "f0", "read-only": True, "filename": "b.iso"}],
        [{"driver": "raw", "node-name": "nd", "file": "fd", "detect-zeroes": "off"}])],
    step("query-named-block-nodes"), step("blockdev-reopen", {"options": [{"driver": "raw", "node-name": "nd", "file": "fd", "detect-zeroes": "on"}]}),
    step("blockdev-del", {"node-name": "nd"}), step("blockdev-del", {"node-name": "fd"}), step("blockdev-del", {"node-name": "none"}),
    step("blockdev-del"), step("block_resize", {"node-name": "nd", "size": 8388608}), step("query-block"),
    step("block_resize", {"node-name": "none", "size": 1}), step("block_resize", {"size": 1}),
    step("block_resize", {"node-name": "nd", "size": -1}), step("block_resize", {"device": "none", "size": 1}),
    step("block_resize", {"node-name": "nd"}), step("block_resize", {"node-name": "nd", "size": "big"}),
    step("block-set-write-threshold", {"node-name": "nd", "write-threshold": 4096}), step("query-block"),
    step("block-set-write-threshold", {"node-name": "none", "write-threshold": 4096}),
    step("block-set-write-threshold", {"node-name": "nd"}),
    step("block-set-write-threshold", {"node-name": "nd", "write-threshold": 0}),
    step("block-set-write-threshold", {"node-name": "nd", "write-threshold": "x"}))

LIMITS = (
    step("block_set_io_throttle", OFF, id="cd0", bps_rd=500000, group="g0"), step("query-block"),
    step("block_set_io_throttle", OFF, id="hd0", group="g0", iops=100, iops_max=200, iops_max_length=5, iops_size=4096),
    step("query-block"), hmp("info block"), step("block_set_io_throttle", OFF, id="cd0", bps=1, bps_rd=1),
    step("block_set_io_throttle", OFF, id="cd0", bps=-1), step("block_set_io_throttle", OFF, id="none"),
    step("block_set_io_throttle", {"id": "cd0"}), step("block_set_io_throttle", OFF, id=ANON, bps=1),
    step("block_set_io_throttle", OFF, id="cd0", bps_max=5), step("block_set_io_throttle", OFF, id="cd0", bps=5, bps_max=1),
    step("block_set_io_throttle", OFF, id="cd0", bps=5, bps_max_length=0), step("block_set_io_throttle", OFF, id="cd0", bps_max_length=9),
    step("block_set_io_throttle", OFF, id="cd0"), step("block_set_io_throttle", OFF, id="hd0"), step("query-block"),
    step("block_set_io_throttle", OFF, id="hd0", bps=1000000), step("query-block"), step("block_set_io_throttle", OFF, id="hd0"))

OBJECTS = (
    step("object-add", {"qom-type": "secret", "id": "s", "data": "text"}), step("object-add", {"qom-type": "secret", "id": "s", "data": "text"}),
    step("object-add", {"qom-type": "secret", "id": "t"}), step("object-add", {"qom-type": "secret", "id": "t", "data": "x", "file": "y"}),
    step("object-add", {"qom-type": "secret", "id": "t", "file": "none"}, label="no-file"), step("object-add", {"qom-type": "secret", "data": "x"}),
    step("object-add", {"id": "t", "data": "x"}), step("object-add", {"qom-type": "none", "id": "t"}),
    step("object-add", {"qom-type": "secret", "id": "t", "data": "x", "color": "red"}),
    step("object-add", {"qom-type": "secret", "id": "t", "data": "%%%", "format": "base64"}),
    step("object-add", {"qom-type": "secret", "id": "1t", "data": "x"}),
    step("object-add", {"qom-type": "throttle-group", "id": "tg", "limits": {"iops-total": 100}}),
    step("object-add", {"qom-type": "throttle-group", "id": "th", "limits": {"iops-total": 1, "iops-read": 1}}),
    step("qom-list", {"path": "/objects/s"}, label="secret"), step("qom-list", {"path": "/objects/tg"}, label="group"),
    step("qom-get", {"path": "/objects/tg", "property": "limits"}),
    step("qom-set", {"path": "/objects/tg", "property": "limits", "value": {"iops-total": 200, "iops-total-max": 300}}),
    step("qom-get", {"path": "/objects/tg", "property": "limits"}),
    step("qom-set", {"path": "/objects/tg", "property": "limits", "value": {"iops-total": 2, "iops-read": 3}}),
    step("qom-get", {"path": "/objects/s", "property": "type"}), step("qom-get", {"path": "/objects/s", "property": "format"}, label="secret"),
    step("blockdev-add", {"driver": "null-co", "node-name": "tz", "size": 65536}),
    step("blockdev-add", {"driver": "throttle", "node-name": "t", "throttle-group": "tg", "file": "tz"}),
    step("blockdev-add", {"driver": "throttle", "node-name": "u", "throttle-group": "none", "file": "fd"}),
    step("object-add", {"qom-type": "throttle-group", "id": "tk", "limits": {"iops-total": 50}}),
    step("blockdev-reopen", {"options": [{"driver": "throttle", "node-name": "t", "throttle-group": "none", "file": "tz"}]}),
    step("object-del", {"id": "tg"}),
    step("blockdev-reopen", {"options": [{"driver": "throttle", "node-name": "t", "throttle-group": "tk", "file": "tz"}]}),
    step("object-del", {"id": "tk"}),
    step("blockdev-reopen", {"options": [{"driver": "throttle", "node-name": "t", "throttle-group": "tg", "file": "tz"}]}),
    step("object-del", {"id": "tk"}),
    step("object-del", {"id": "tg"}), step("blockdev-del", {"node-name": "t"}), step("blockdev-del", {"node-name": "tz"}), step("object-del", {"id": "tg"}),
    step("object-del", {"id": "tg"}), step("object-del", {"id": "s"}), step("object-del", {"id": "s"}))

DIFFERS = {"serial": "identity", "ver": "identity", "hotpluggable": "plug", "parent_bus": "bus", "cyls": "geometry"}

TREE = (
    step("qom-list", {"path": "/machine/peripheral"}), step("qom-list", {"path": "/machine/peripheral-anon"}),
    step("qom-list", {"path": "/machine/peripheral/cd0"}, label="bus"), step("qom-list", {"path": "/machine/peripheral/hd0"}, label="bus"),
    step("qom-list", {"path": "/none"}), step("qom-list", {"path": "cd0"}, label="bus"), step("qom-list"),
    *[step("qom-get", {"path": "/machine/peripheral/cd0", "property": p}, DIFFERS.get(p)) for p in (
        "type", "drive", "serial", "realized", "hotplugged", "hotpluggable", "unit", "model", "ver", "wwn", "rerror", "werror",
        "logical_block_size", "physical_block_size", "bootindex", "write-cache", "none", "parent_bus")],
    *[step("qom-get", {"path": "/machine/peripheral/hd0", "property": p}, DIFFERS.get(p)) for p in ("type", "drive", "serial", "rotation_rate", "cyls")],
    step("qom-get", {"path": ANON, "property": "drive"}), step("qom-get", {"path": "/none", "property": "drive"}),
    step("qom-set", {"path": "/machine/peripheral/cd0", "property": "serial", "value": "x"}),
    step("qom-set", {"path": "/machine/peripheral/cd0", "property": "none", "value": "x"}),
    step("qom-set", {"path": "/none", "property": "none", "value": "x"}),
    step("device-list-properties", {"typename": "none"}),
    step("device-list-properties", {"typename": "ide-cd"}), step("device-list-properties", {"typename": "ide-hd"}, label="hd-properties"))

PLUG = (
    step("device_add", {"driver": "none", "id": "x"}), step("device_add", {"id": "x"}),
    step("device_add", {"driver": "ide-cd", "id": "x", "bus": "none.0"}), step("device_add", {"driver": "ide-cd", "bus": "ide.3", "id": "x"}, "plug"),
    step("device_del", {"id": "none"}), step("device_del", {"id": "x"}, "unplug"), step("device_del"))

DESCRIPTORS = (
    step("getfd", {"fdname": "x"}), step("getfd"), step("closefd", {"fdname": "x"}), step("add-fd"), step("add-fd", {"fdset-id": 5}),
    step("remove-fd", {"fdset-id": 1}), step("remove-fd", {"fdset-id": 1, "fd": 3}), step("remove-fd"))

HUMAN = (
    hmp("info block"), hmp("info block hd0", "by-device"), hmp("info block -n"), hmp("info block none"), hmp("info status"), hmp("info none"),
    hmp("none"), hmp("eject"), hmp("eject cd0", "by-device"), hmp("change"), hmp("info name"), hmp("info uuid"), hmp("stop"), hmp("info status"), hmp("cont"),
    hmp(""), hmp("help eject"), hmp("help change"), hmp("help none"), hmp('info "block'), hmp("object_add secret,id=q,data=x"), hmp("object_del q"),
    hmp("object_del q"), hmp("device_del none"), hmp("block_resize none 1M"), hmp("info blockstats", "hmp-stats"), hmp("info block -v n1"))

SESSION = (QUERIES + WRONG + LIMITS + OBJECTS + TREE + NODES + TRAY + PLUG + DESCRIPTORS + HUMAN +
           (step("stop"), step("query-status"), step("cont"), step("cont"), step("quit")))
