// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ratchets lowers the figures of internal/archtest/ratchets.txt to what the sources have. It raises none; where the table does not
// exist, it writes today's figures. It takes no arguments and works from any directory of the repository.
package main
