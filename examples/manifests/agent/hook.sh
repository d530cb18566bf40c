#!/bin/sh
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# A hook of the DaemonSet: it runs that of the node, a program in /etc/belay-agent/hooks of the host, in the host's namespaces and as its root. That directory is
# yours to fill; docs/agent-rollouts.md has what each of them is asked for. Its exit code and its output are this one's.
exec nsenter --target 1 --mount --uts --ipc --net --pid -- "/etc/belay-agent/hooks/$BELAY_VERB"
