"""Runs python/verify.py for the differential test: frames in on stdin, one frame out for each.

A frame is one letter, a length of four bytes (little endian) and that many bytes. `A` sets the answers; the reply is
empty or says what is wrong with them. `S` is a submission; the reply is the text of details.json.
"""

import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

import verify  # noqa: E402  (found through the path just set)

assert not os.environ.get("PYTHONHASHSEED"), "the order of results must not depend on hashing"


def main():
    read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
    sheet = None
    while True:
        head = read(5)
        if not head:
            return
        kind, size = head[:1], struct.unpack("<I", head[1:])[0]
        data = read(size)
        if kind == b"A":
            try:
                sheet, reply = verify.Sheet(verify.read_answers(data)), ""
            except verify.AnswersError as error:
                sheet, reply = None, str(error)
        else:
            reply = verify.dump(verify.evaluate(sheet, data))
        reply = reply.encode("utf-8")
        write(struct.pack("<I", len(reply)) + reply)
        sys.stdout.buffer.flush()


main()
