# Names with line ends, commands and broken characters.
python3 - <<'P'
import os
out = os.environ["OUTPUT"]
for name in [b"a\nb", b"\xff\xfe", b"\x1b[31mred", b"-rf", b"$(reboot)", b"a\\b", b" ", b"\xe2\x80\xae", b"CON", b"a:b", b"x" * 255]:
    for place in (b"/workspace/", b"/workspace/d" + name.replace(b"/", b"") [:200] + b"/"):
        try:
            os.makedirs(place, exist_ok=True)
            open(place + name, "w").close()
        except OSError:
            pass
P
