# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# What is done on a host. It is sent behind the variables of a request, on standard input, and does nothing before its last line: a request that is
# cut off has no effect. It keeps no daemon. POSIX sh with printf built in, and flock, setsid, timeout, find and the core utilities.

b_say() { printf '%s\n' "$*"; }

b_end() {
	b_say belay "$b_nonce" end
	exit 0
}

b_fail() {
	b_say fail "$*"
	b_end
}

# A descriptor is locked, or ten seconds are over. Not every flock can wait.
b_lock() {
	flock -w 10 -x "$1" && return 0
	b_n=0
	until flock -n -x "$1"; do
		b_n=$((b_n + 1))
		[ "$b_n" -lt 20 ] || return 1
		sleep 0.1
	done
}

# A file has its old content or its new one, and the new one when this returns.
b_write() {
	printf '%s' "$2" >"$1.new" && sync "$1.new" && : point && mv -f "$1.new" "$1" && : point && sync .
}

# One file of a step, from base64.
b_file() {
	case $1 in */*) mkdir -p "steps/$b_put/${1%/*}" || return 1 ;; esac
	printf '%s' "$2" | base64 -d >"steps/$b_put/$1.new" && mv -f "steps/$b_put/$1.new" "steps/$b_put/$1"
}

b_boot() {
	b_id=
	read -r b_id <"$b_bootfile"
}

b_used() { [ -e used ] && grep -q -x -F -e "$1" used; }

# No claim is there for these, as after a release that was cut off.
b_sweep() { [ ! -e steps ] && [ ! -e console.log ] || rm -rf steps console.log alive; }

b_step() {
	b_s=${1#steps/}
	if [ -e "$1/exit" ]; then
		b_code=
		read -r b_code <"$1/exit"
		b_say step "$b_s" exited "$b_code"
	elif [ -e "$1/lock" ] && ! flock -n -x "$1/lock" true; then
		b_say step "$b_s" running
	elif [ -e "$1/run" ]; then
		b_say step "$b_s" ready
	fi
}

b_look() {
	b_say boot "$b_id"
	[ "$b_there" ] || return 0
	if [ -z "$b_token" ] || ! b_used "$b_token"; then :; else b_say used; fi
	if [ ! -e claim.json ]; then
		b_sweep
		for b_f in data/* data/.[!.]*; do
			if [ -e "$b_f" ] || [ -L "$b_f" ]; then
				b_say data
				break
			fi
		done
		return 0
	fi
	b_say claim "$(base64 <claim.json | tr -d '\n')"
	for b_d in steps/*; do
		[ ! -d "$b_d" ] || b_step "$b_d"
	done
	if [ -e alive ] && ! flock -n -x alive true; then b_say held; fi
	if [ "$b_tail" -gt 0 ] && [ -e console.log ]; then b_say console "$(tail -c "$b_tail" console.log | base64 | tr -d '\n')"; fi
}

# The processes of a step's session are killed; those of another boot are gone.
b_kill() {
	[ -e "$1/pid" ] || return 0
	b_pid= b_began= b_of=
	read -r b_pid b_began b_of <"$1/pid"
	[ "$b_of" = "$b_id" ] || return 0
	if [ -e "/proc/$b_pid/stat" ] && read -r b_line <"/proc/$b_pid/stat"; then
		b_fields ${b_line##*) }
		[ "$b_start_time" = "$b_began" ] || return 0
	fi
	b_n=0
	while b_session "$b_pid"; do
		b_n=$((b_n + 1))
		[ "$b_n" -lt 20 ] || return 1
		sleep 0.1
	done
}

# Of the fields behind the name in /proc/PID/stat.
b_fields() {
	b_start_time=
	[ $# -lt 20 ] || b_start_time=${20}
}

# Whether there were processes in a session. They are killed. Behind the name, which may hold anything, there are a letter and numbers alone; not
# one process of the shell reads those files, as it would byte by byte.
b_session() {
	b_seen=$(grep -l -s -E -e "\) [^XZ] -?[0-9]+ -?[0-9]+ $1 [-0-9 ]*\$" /proc/[0-9]*/stat)
	[ "$?" -le 2 ] || return 0
	for b_f in $b_seen; do
		b_f=${b_f#/proc/}
		kill -KILL "${b_f%/stat}"
	done
	[ "$b_seen" ]
}

# Begins a step whose files are there, unless it runs or has ended. All other steps are over then.
b_start_step() {
	[ ! -e "steps/$b_start/exit" ] || return 0
	[ -e "steps/$b_start/run" ] || return 0
	for b_d in steps/*; do
		[ -d "$b_d" ] && [ "$b_d" != "steps/$b_start" ] || continue
		b_kill "$b_d" || b_fail busy processes
		if [ -e "$b_d/lock" ] && ! flock -n -x "$b_d/lock" true; then b_fail busy step; fi
		: point
		rm -rf "$b_d" || b_fail store remove
	done
	exec 7>>"steps/$b_start/lock" || b_fail store lock
	if flock -n -x 7; then
		b_kill "steps/$b_start" || b_fail busy processes
		rm -f "steps/$b_start/pid"
		: point
		setsid sh "steps/$b_start/run" </dev/null >/dev/null 2>&1 9>&- &
		b_n=0
		until [ -e "steps/$b_start/pid" ] || [ "$b_n" -ge 50 ]; do
			b_n=$((b_n + 1))
			sleep 0.02
		done
		: point
	fi
	exec 7>&-
	b_n=0 # what is quick is done when this returns
	until [ -e "steps/$b_start/exit" ] || [ "$b_n" -ge 10 ]; do
		b_n=$((b_n + 1))
		sleep 0.03
	done
}

# A token is written down as used up. The last ones are kept.
b_spend_token() {
	b_used "$b_spend" && return 0
	{ [ ! -e used ] || tail -n "$((b_keep - 1))" used; printf '%s\n' "$b_spend"; } >used.new && sync used.new && : point && mv -f used.new used && sync .
}

b_swap() {
	b_now=
	[ ! -e claim.json ] || b_now=$(cat claim.json)
	[ "$b_now" = "$b_expect" ] || { b_say conflict; return 0; }
	[ -z "$b_when" ] || [ "$b_when" = "$b_id" ] || { b_say conflict; return 0; }
	[ -z "$b_forbid" ] || ! b_used "$b_forbid" || { b_say conflict; return 0; }
	[ -z "$b_spend" ] || b_spend_token || b_fail store used
	: point
	if [ "$b_put" ]; then
		mkdir -p "steps/$b_put" && b_files && find "steps/$b_put" -exec sync {} + && sync steps || b_fail store step
		: point
	fi
	if [ -z "$b_next" ]; then
		rm -f claim.json && sync . || b_fail store claim
		: point
		b_sweep
	elif [ "$b_next" != "$b_now" ]; then
		b_write claim.json "$b_next" || b_fail store claim
	fi
	: point
	[ -z "$b_start" ] || b_start_step
	b_say swapped
}

b_main() {
	umask 077
	LC_ALL=C
	export LC_ALL
	exec 2>/dev/null
	b_say belay "$b_nonce" begin
	for b_tool in flock setsid timeout base64 find sync tail grep tr; do
		command -v "$b_tool" >/dev/null || b_fail lacks "$b_tool"
	done
	b_boot || b_fail store boot
	b_there=
	[ "$b_op" = look ] || mkdir -p "$b_dir" || b_fail store directory
	if [ -d "$b_dir" ]; then
		b_there=1
		cd "$b_dir" && touch lock || b_fail store directory
		exec 9>>lock
		b_lock 9 || b_fail busy lock
	fi
	[ "$b_op" = look ] || b_swap
	: point
	b_look
	b_end
}

b_main
