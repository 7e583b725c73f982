# Memory, disk, processor and time, deaf to requests to stop.
trap '' TERM INT HUP QUIT
python3 -c 'x = []
while True: x.append(bytearray(50 * 1024 * 1024))' 2> /dev/null &
dd if=/dev/zero of=/workspace/fill bs=1M 2> /dev/null
(while :; do :; done) &
(trap '' TERM; sleep 100000) &
sleep 100000
