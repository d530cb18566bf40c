// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package systemd restarts units of systemd over D-Bus, and says whether systemd would bring a unit back.
//
// A [Unit] is a configsync.Restarter and a configsync.Probe for what has a unit of its own, such as a stock kubelet. A [Policy] is what the unit
// says about restarts: a node whose agent exits with status 0 under Restart=on-failure never comes back, and nobody is told.
//
// # Promise
//
// A restart is asked for after Options.Prepare has returned nil, and Restart returns when systemd says that it is done, or is under way for longer
// than Options.Timeout. Each call makes a connection of its own: a systemd that was executed anew is found again. Nothing here waits beyond its context.
//
// # No promise
//
// That the unit is well after a restart is a matter of probes. Who starts the unit again after a crash is systemd; restart.Guard as an ExecStartPre
// counts those starts.
//
// # Concurrency
//
// All methods may be called from several goroutines.
package systemd
