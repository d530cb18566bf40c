// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import "k8s.io/client-go/rest"

// AssociatedNode returns a copy of config with which an agent reads the pods of its own node as the node, and of no other: it lists
// and watches with the field selector spec.nodeName=<node>, anything wider is refused. It needs the rights of [Options].NodePods, a token
// that is bound to a pod on that node, and Kubernetes 1.36, or 1.35 with the feature gate ConstrainedImpersonation. Elsewhere every read is
// refused. Writes are refused too: those go by config. A nil config gives nil.
func AssociatedNode(config *rest.Config, node string) *rest.Config {
	if config == nil {
		return nil
	}
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{UserName: nodeUserPrefix + node}
	return c
}
