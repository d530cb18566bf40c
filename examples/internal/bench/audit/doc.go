// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit reads the API server's audit log while it grows: what was asked, and by whom, by the server's own word.
package audit
