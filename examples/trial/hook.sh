#!/bin/sh
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# All hooks of the trial: what a node runs is one line of a file, "NAME DIGEST", and any revision but the one named "fatal" is well. What each hook is
# asked for is in docs/agent-rollouts.md.
set -eu
file=/var/lib/belay-agent/trial
name= digest=
[ ! -e "$file" ] || read -r name digest <"$file"

case $BELAY_VERB in
observe) printf '{"current": {"name": "%s", "digest": "%s"}, "canRevert": true}\n' "${name:-nothing}" "$digest" ;;
disruption) echo '{"disruption": "None"}' ;;
apply | revert) printf '%s %s\n' "$BELAY_REVISION" "$BELAY_DIGEST" >"$file.new" && mv "$file.new" "$file" ;;
verify)
  if [ "$name" = fatal ]; then
    echo '{"verdict": "Fail", "reason": "Fatal", "message": "nothing runs any more"}'
  else
    echo '{"verdict": "Pass"}'
  fi
  ;;
esac
