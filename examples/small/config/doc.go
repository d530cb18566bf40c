// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command config takes its config from a directory, keeps it on disk, and rolls back from one that it crashes with. It exits with 75 to be
// started again with another config, as a systemd unit with Restart=always does. It is made to be copied:
//
//	mkdir -p wanted && echo 'workers: 8' > wanted/config
//	until go run . state wanted; do :; done
package main
