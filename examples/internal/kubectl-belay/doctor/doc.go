// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor says what keeps rollouts from working in a cluster, and what helps: the definitions, rights, the controller, agents, ledgers,
// slots and budgets.
//
// Checks are pure functions of what was seen. What could not be looked at is a finding too, and never a clean bill.
package doctor
