# Files with times, permissions, access lists and attributes that nobody expects.
cd /workspace || exit
echo "{}" > "$OUTPUT"
mkdir -p odd/deep odd/sticky odd/given
for name in old new before set plain listed given/x sticky/x deep/x; do echo "$name" > "odd/$name"; done
chmod 7777 odd/set odd/sticky; chmod 2300 odd/deep; chmod 1711 odd/given; chown 0:0 odd/plain 2> /dev/null
python3 - <<'P'
import fcntl, os, struct
out = os.environ["OUTPUT"]
for name, at in (("old", 0), ("new", 2**62), ("before", -(2**62)), ("set", 253402300800 * 10**9), (out, 1)):
    try:
        os.utime(name if name == out else "odd/" + name, ns=(at, at))
    except (OSError, OverflowError):
        pass
def entries(*three):
    """An access list as the kernel keeps it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in three)
# Its owner may do nothing with it, everybody else anything.
shut = entries((1, 0, 2**32 - 1), (2, 7, 0), (4, 7, 2**32 - 1), (16, 7, 2**32 - 1), (32, 7, 2**32 - 1))
attributes = [("system.posix_acl_access", shut), ("system.posix_acl_default", shut), ("user.aec-bench.reward", b"1.0"), ("user.big", b"x" * 60000)]
attributes += [("user.mime_type", b"x"), ("user.overlay.opaque", b"y"), ("user.overlay.redirect", b"/tests"), ("trusted.overlay.opaque", b"y"), ("security.capability", b"\1\0\0\2" + b"\xff" * 16), ("security.selinux", b"x\0")]
for path in ("odd/listed", "odd/given", "odd", out, "/workspace", "/logs"):
    for name, content in attributes:
        try:
            os.setxattr(path, name, content, follow_symlinks=False)
        except OSError:
            pass
for path in ("odd/plain", "odd/deep", out):
    try:
        # Never to be changed or removed, and only to be added to.
        fcntl.ioctl(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 0x40086602, struct.pack("l", 0x30))
    except OSError:
        pass
P
chmod 7000 "$OUTPUT"; chmod 4111 /workspace; true
