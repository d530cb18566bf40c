# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs one step, in a session of its own. Descriptor 7 is the lock of the step; 8 is that of the machine, which its processes inherit.

cd "${0%/run}" || exit 1
here=$(pwd)
b_id=
read -r b_line <"/proc/$$/stat"
. ./env
read -r b_id <"$belay_bootfile"
b_time() { printf '%s' "${20}"; }
printf '%s %s %s\n' "$$" "$(b_time ${b_line##*) })" "$b_id" >pid.new && mv -f pid.new pid || exit 1

umask 022
code=0
if [ "$belay_marker" ]; then
	exec 8>>../../alive
	code=75 # it passes
	n=0
	while [ "$n" -lt 100 ]; do # the agent holds it for a moment when it looks whether a machine lives
		if flock -n -s 8; then
			code=0
			mkdir -p "$BELAY_DATA" || code=70
			break
		fi
		n=$((n + 1))
		sleep 0.1 7>&- 8>&- || sleep 1 7>&- 8>&-
	done
fi
log=../../console.log
if [ -e "$log" ] && [ "$(wc -c <"$log")" -gt 1048576 ]; then
	tail -c 524288 "$log" >log.new && cat log.new >"$log"
	rm -f log.new
fi
(umask 077 && printf '== %s %s\n' "$BELAY_STEP" "$belay_step" >>"$log")
n=0
while [ "$code" = 0 ] && [ -e "script.$n" ]; do
	(cd / && exec timeout -k 10 "$belay_timeout" sh "$here/script.$n") <stdin >>"$log" 2>&1 7>&-
	code=$?
	n=$((n + 1))
done
rm -rf join stdin
printf '== %s %s: exit %s\n' "$BELAY_STEP" "$belay_step" "$code" >>"$log"
printf '%s\n' "$code" >exit.new && sync exit.new && mv -f exit.new exit && sync .
