#!/bin/sh
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs what the tests with a real kubelet need, where it is missing. Where it cannot, it says why and still
# succeeds: those tests then skip with the same reason.
set -eu

missing=
for pair in containerd:containerd runc:runc ip:iproute2 mount:mount; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -x /usr/lib/cni/ptp ] || [ -x /opt/cni/bin/ptp ] || missing="$missing containernetworking-plugins"

if [ -z "$missing" ]; then
	exit 0
fi
if [ "$(id -u)" != 0 ]; then
	echo "kubelet-deps:$missing missing and not installed: this needs root; tests with a real kubelet will be skipped" >&2
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "kubelet-deps:$missing missing and not installed: this is no Debian (no apt-get); tests with a real kubelet will be skipped" >&2
	exit 0
fi

echo "kubelet-deps: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# A service would be started by the package on a machine with an init system; tests start containerd of their own.
# shellcheck disable=SC2086 # a list of names
apt-get install -y -qq --no-install-recommends $missing
