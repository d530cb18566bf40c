#!/bin/sh
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# A hook of the DaemonSet: it runs that of the node, a program in /etc/belay-agent/hooks of the host, in the host's namespaces and as its root. That directory is
# yours to fill; docs/agent-rollouts.md has what each of them is asked for. Its exit code and its output are this one's.
#
# What changes the node or fetches for it is run by the host's systemd, as belay-update.service and belay-prepare.service: nsenter leaves a program in the
# cgroup of the pod, whose memory limit would kill it and the agent, and which ends with the pod when the DaemonSet rolls. Such a unit goes on without this
# hook, and there is one of each at a time. Called again for the same attempt, this waits until it has ended and then runs the program once more, as
# calls with one BELAY_ATTEMPT have one effect; of another attempt, which the agent has given up, it is stopped first. It ends before --apply-timeout of the
# agent (30m) does: then the agent asks what has come of it, and nothing may change the node any more. Change both together.
set -eu

up() { cut -d. -f1 /proc/uptime; }
end=$(($(up) + 1620))

# host runs a command on the host.
host() { nsenter --target 1 --mount --uts --ipc --net --pid -- "$@"; }

program=/etc/belay-agent/hooks/$BELAY_VERB
case $BELAY_VERB in
prepare) unit=belay-prepare ;;
apply | revert) unit=belay-update ;;
*) unit= ;;
esac
if [ -z "$unit" ] || ! host test -d /run/systemd/system; then
  exec nsenter --target 1 --mount --uts --ipc --net --pid -- "$program"
fi

show() { host systemctl show --property="$1" --value "$unit.service"; }
runs() { case $(show ActiveState) in active | activating | deactivating | reloading) ;; *) return 1 ;; esac; }

what="$BELAY_VERB ${BELAY_ATTEMPT:-ahead} $BELAY_REVISION"
is=$(show Description) # before the state: of a unit that ends meanwhile it says nothing
if runs && [ "$is" != "$what" ]; then host systemctl stop "$unit.service" || ! runs; fi
while runs; do
  [ "$(up)" -lt "$end" ] || host systemctl stop "$unit.service" || ! runs
  sleep 1
done
host systemctl reset-failed "$unit.service" 2>/dev/null || true # of a hook that was killed
host rm -f "/run/$unit.out"

left=$((end - $(up)))
[ "$left" -gt 0 ] || exit 1

# It returns when a oneshot has ended, and the unit stays there if it has failed.
code=0
host systemd-run --quiet --unit="$unit" --description="$what" --service-type=oneshot \
  --property=TimeoutStartSec="${left}s" --property=TimeoutStopSec=30s --property=StandardOutput="file:/run/$unit.out" --property=StandardError=journal \
  --setenv=BELAY_VERB="$BELAY_VERB" --setenv=BELAY_ATTEMPT="${BELAY_ATTEMPT:-}" --setenv=BELAY_REVISION="$BELAY_REVISION" \
  --setenv=BELAY_DIGEST="${BELAY_DIGEST:-}" --setenv=BELAY_REVERT="${BELAY_REVERT:-false}" -- "$program" || code=1
if [ "$code" != 0 ]; then
  [ "$(show ExecMainCode)" != 1 ] || code=$(show ExecMainStatus)
  host systemctl reset-failed "$unit.service" 2>/dev/null || true
fi
host cat "/run/$unit.out" 2>/dev/null || true
exit "$code"
