// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/identity/nodeauth"
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

// TestBrokenExpressionDenies covers R-AU-06: an expression that meets data which it cannot do without denies the write, and a probe takes that for
// the guard. In the condition for faults it denies writes to the own node too. A policy that the server has not loaded, or has lost, is no error
// to it: to notice that is the probe's part.
func TestBrokenExpressionDenies(t *testing.T) {
	const missing = "request.userInfo.extra['example.com/missing'][0]"
	t.Run("condition", func(t *testing.T) {
		deniesBroken(t, true, func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			e := &spec.MatchConditions[0].Expression
			const node = "request.userInfo.extra['authentication.kubernetes.io/node-name'][0]"
			if !strings.Contains(*e, node) {
				t.Fatalf("the condition for faults does not hold %s:\n%s", node, *e)
			}
			*e = strings.ReplaceAll(*e, node, missing)
		})
	})
	t.Run("variable", func(t *testing.T) {
		deniesBroken(t, false, func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
			i := slices.IndexFunc(spec.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == "node" })
			spec.Variables[i].Expression = missing
		})
	})
}

// deniesBroken wants the policy with something broken to deny writes to the agent's own node, or to another one.
func deniesBroken(t *testing.T, own bool, breaks func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec)) {
	t.Helper()
	c := newCluster(t)
	a, b := c.agent(t, "a"), c.node(t, "b")
	c.has(t, a.node)
	c.has(t, b)
	objects, err := nodeauth.Objects(c.options)
	must(t, err)
	breaks(&objects[0].(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec)
	c.create(t, objects...)
	by := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%[1]s' denied request: ", c.options.Name)
	node := b.Name
	if own {
		node = a.node.Name
	}
	eventually(t, func() string {
		for what, err := range c.try(t, a.token, node) {
			if err == nil || !strings.Contains(err.Error(), by) || !strings.Contains(err.Error(), "no such key") {
				return what + ": got " + errorText(err) + ", want it denied as an expression fails"
			}
		}
		return ""
	})
	settle(t, c.probes(t, a, node), nil)
}
