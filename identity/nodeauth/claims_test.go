// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// claiming is a client of the agents' account with the claims that are given, as no token has them.
func (c *cluster) claiming(t *testing.T, claims map[string][]string) dynamic.Interface {
	t.Helper()
	config := c.env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + c.namespace + ":" + agents, Extra: claims}
	_, objects := clients(t, config)
	return objects
}

// TestOneOfEachClaimIsWanted covers R-AU-02 and R-AU-06: a caller is on a node if it names one, with one UID, and one pod. Where a claim is missing, is
// empty or has several values, no expression fails, which would be 422: it is 403, with what was found.
func TestOneOfEachClaimIsWanted(t *testing.T) {
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.has(t, a.node)
	c.guard(t)
	const prefix = "authentication.kubernetes.io/"
	right := map[string][]string{
		prefix + "node-name": {a.node.Name}, prefix + "node-uid": {string(a.node.UID)},
		prefix + "pod-name": {a.pod.Name}, prefix + "pod-uid": {string(a.pod.UID)},
	}
	for what, err := range c.writesOf(t, c.claiming(t, right), a.node.Name) {
		if err != nil {
			t.Fatalf("%s with one of each: got %v, want it accepted: the refusals below would prove nothing", what, err)
		}
	}
	for name, row := range map[string]struct {
		claim             string // all of them if empty
		values            []string
		nodes, uids, pods int
	}{
		"two nodes":         {"node-name", []string{a.node.Name, b.Name}, 2, 1, 1},
		"two node UIDs":     {"node-uid", []string{string(a.node.UID), string(b.UID)}, 1, 2, 1},
		"two pods":          {"pod-name", []string{a.pod.Name, "another"}, 1, 1, 2},
		"no node":           {"node-name", nil, 0, 1, 1},
		"no node UID":       {"node-uid", nil, 1, 0, 1},
		"no pod":            {"pod-name", nil, 1, 1, 0},
		"an empty node":     {"node-name", []string{""}, 1, 1, 1},
		"an empty node UID": {"node-uid", []string{""}, 1, 1, 1},
		"no claims":         {"", nil, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claims := maps.Clone(right)
			if claims[prefix+row.claim] = row.values; row.claim == "" {
				claims = nil
			} else if row.values == nil {
				delete(claims, prefix+row.claim)
			}
			says := fmt.Sprintf("names %d nodes, %d node UIDs and %d pods, but must name one of each", row.nodes, row.uids, row.pods)
			for what, err := range c.writesOf(t, c.claiming(t, claims), a.node.Name) {
				if fault := c.denial(err, says); fault != "" {
					t.Errorf("%s: %s", what, fault)
				}
			}
		})
	}
}
