// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
)

// Protected reports whether one of the roles is part of the control plane: such a machine ends in two steps, and only if it was entered by
// spec.decommission.
func Protected(roles []string) bool {
	return slices.Contains(roles, RoleControlPlane) || slices.Contains(roles, RoleEtcd)
}

// ValidateRoles returns an error for roles that no machine can have: none at all, one twice, what can't be a label, and only roles that are not
// understood. A machine has any of worker, control-plane and etcd, so that a single one can be a cluster, and etcd can have machines of its own.
func ValidateRoles(roles []string) error {
	known := false
	for i, r := range roles {
		if err := checkRole(r); err != nil {
			return err
		}
		if slices.Contains(roles[:i], r) {
			return fmt.Errorf("machine: role %q stands twice", r)
		}
		known = known || r == RoleWorker || Protected([]string{r})
	}
	if !known {
		return fmt.Errorf("machine: roles %.200q: want at least one of %q, %q and %q", roles, RoleWorker, RoleControlPlane, RoleEtcd)
	}
	return nil
}

func checkRole(role string) error {
	switch role {
	case "master":
		return fmt.Errorf("machine: role %q: it is %q here", role, RoleControlPlane)
	case "node", "minion":
		return fmt.Errorf("machine: role %q: it is %q here", role, RoleWorker)
	}
	const inner = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if role == "" || len(role) > maxName || strings.Trim(role, "-") != role || !only(role, inner) {
		return fmt.Errorf("machine: role %.80q: want 1 to %d lower case letters, digits and dashes, with no dash at the ends", role, maxName)
	}
	return nil
}

func only(s, letters string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(letters, r) })
}
