// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// probedLease is the Lease that no agent may create: see nodeauth.Probe. That this is denied is what an agent asks for.
const probedLease = "belay-guard-probe"

// An event is one of the API server's audit log, as far as it is used.
type event struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
	Annotations map[string]string
}

// The notes of the API server about who allowed a request.
const (
	decisionNote = "authorization.k8s.io/decision"
	reasonNote   = "authorization.k8s.io/reason"
)

var grantedBy = regexp.MustCompile(`of (Role|ClusterRole) "([^"]+)"`)

// right is what a request has taken. Reads of a kind are one: what can be watched can be listed and got, and a client watches with a list or without.
func right(verb, group, resource string) string {
	if slices.Contains([]string{"get", "list", "watch"}, verb) {
		verb = "read"
	}
	return verb + " " + group + "/" + resource
}

// rights are those of a role's rules, whatever names they are for.
func rights(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all[right(verb, group, resource)] = true
				}
			}
		}
	}
	return all
}

// An audit compares what roles give with what was asked for.
type audit struct {
	given    map[string]map[string]bool // the rights of each role
	requests map[string]int             // by user
	denied   []string
}

// newAudit begins with the roles among all.
func newAudit(t *testing.T, all []*unstructured.Unstructured) *audit {
	t.Helper()
	a := &audit{given: map[string]map[string]bool{}, requests: map[string]int{}}
	for _, u := range only(all, "Role", "ClusterRole") {
		a.given[key(u)] = rights(typed[rbacv1.ClusterRole](t, u).Rules)
	}
	return a
}

// read takes away what was used, and keeps what was denied.
func (a *audit) read(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the audit log has the line %q: %v", line, err)
		}
		a.requests[e.User.Username]++
		if e.Annotations[decisionNote] != "allow" || e.ResponseStatus.Code == http.StatusForbidden {
			if e.Annotations[decisionNote] != "allow" || e.Verb != "create" || e.ObjectRef.Name != probedLease {
				a.denied = append(a.denied, fmt.Sprintf("%s: %s %s: %d %s", e.User.Username, e.Verb, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message))
			}
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		taken := right(e.Verb, e.ObjectRef.APIGroup, resource)
		if m := grantedBy.FindStringSubmatch(e.Annotations[reasonNote]); m != nil {
			role := m[1] + "/" + m[2]
			if m[1] == "Role" {
				role = m[1] + "/" + e.ObjectRef.Namespace + "/" + m[2]
			}
			delete(a.given[role], taken)
		}
	}
}

// unused are the rights that nobody has used, by role, sorted.
func (a *audit) unused() (all []string) {
	for _, role := range slices.Sorted(maps.Keys(a.given)) {
		for _, r := range slices.Sorted(maps.Keys(a.given[role])) {
			all = append(all, role+": "+r)
		}
	}
	return all
}

// The audit finds a right that is not used, and a request that was denied by a role or by a policy.
func TestAuditFindsWhatIsWrong(t *testing.T) {
	const (
		agents = `"user":{"username":"agent"},"objectRef":{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"belay-agents","name":"%s"},"responseStatus":{"code":%d},`
		role   = `"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by RoleBinding \"a/belay-agents\" of Role \"belay-agent\" to User \"agent\""}}`
		nobody = `"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":""}}`
	)
	line := func(verb, lease string, code int, by string) string {
		return `{"verb":"` + verb + `",` + fmt.Sprintf(agents, lease, code) + by + "\n"
	}
	a := newAudit(t, only(build(t, "agent"), "Role"))
	a.read(t, line("get", "a", 200, role)+line("create", "a", 201, role)+line("update", "a", 200, role)+line("create", probedLease, 403, role))
	if got := strings.Join(a.unused(), "\n"); !strings.Contains(got, "Role/belay-agents/belay-agent: delete coordination.k8s.io/leases") || strings.Contains(got, "belay-agent: update") {
		t.Errorf("not used are %q, want the deletion of Leases among them, and not the update", got)
	}
	if len(a.denied) > 0 || a.requests["agent"] != 4 {
		t.Errorf("denied are %q of %v, want none of 4", a.denied, a.requests)
	}
	a.read(t, line("delete", "b", 403, role)+line("patch", "b", 403, nobody)+line("create", "b", 403, role))
	if got := strings.Join(a.unused(), "\n"); len(a.denied) != 3 || !strings.Contains(got, "belay-agent: delete") {
		t.Errorf("denied are %q, not used %q: want three that are denied, and the deletion not used, as it was denied", a.denied, got)
	}
}
