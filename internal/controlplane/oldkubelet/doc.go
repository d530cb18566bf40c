// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oldkubelet pins a kubelet of an older minor release than the API server, for tests that take a machine up and down. It holds no code.
package oldkubelet
