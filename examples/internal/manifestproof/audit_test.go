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

	"github.com/belayproject/belay/examples/internal/agent/update"
)

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

// grantedBy finds the role in what RBAC notes.
var grantedBy = regexp.MustCompile(`of (Role|ClusterRole) "([^"]+)"`)

// denials are the requests that are meant to be denied, with the reason: there are no others.
// docs/security-evidence.md names them.
func denials() map[string]string {
	return map[string]string{
		agentUser + ": create coordination.k8s.io/leases " + update.ProbedLease: "an agent asks so whether the policy that holds it to its own node is obeyed",
	}
}

// allowed reports whether the request came through authorization and admission. What was not found or had changed meanwhile did.
func (e *event) allowed() bool {
	return e.Annotations[decisionNote] == "allow" && e.ResponseStatus.Code != http.StatusForbidden
}

// right is what the request takes, as flat has it.
func (e *event) right() string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + e.ObjectRef.APIGroup + "/" + resource
}

// role is the one that has allowed the request, as key has it.
func (e *event) role() string {
	m := grantedBy.FindStringSubmatch(e.Annotations[reasonNote])
	switch {
	case m == nil:
		return ""
	case m[1] == "Role":
		return m[1] + "/" + e.ObjectRef.Namespace + "/" + m[2]
	}
	return m[1] + "/" + m[2]
}

// An audit compares what roles give with what was asked for.
type audit struct {
	unused   map[string]map[string]bool // the rights of each role that nobody has used
	requests map[string]int             // by user
	probes   map[string]int             // requests that were denied as they are meant to be
	denied   []string                   // those that were denied, and are not meant to be
}

// newAudit begins with the roles among all that are bound to accounts there: nobody has used anything.
func newAudit(t testing.TB, all []*unstructured.Unstructured) *audit {
	t.Helper()
	a := &audit{unused: map[string]map[string]bool{}, requests: map[string]int{}, probes: map[string]int{}}
	bound := boundToAccounts(t, all)
	for _, u := range only(all, "Role", "ClusterRole") {
		if bound[key(u)] {
			a.unused[key(u)] = flat(typed[rbacv1.ClusterRole](t, u).Rules)
		}
	}
	return a
}

// boundToAccounts are the roles that some program has, as opposed to people.
func boundToAccounts(t testing.TB, all []*unstructured.Unstructured) map[string]bool {
	t.Helper()
	bound := map[string]bool{}
	for _, u := range only(all, "RoleBinding", "ClusterRoleBinding") {
		b := typed[rbacv1.ClusterRoleBinding](t, u)
		role := b.RoleRef.Kind + "/" + b.RoleRef.Name
		if b.RoleRef.Kind == "Role" {
			role = b.RoleRef.Kind + "/" + b.Namespace + "/" + b.RoleRef.Name
		}
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind }) {
			bound[role] = true
		}
	}
	return bound
}

// events are those of an audit log.
func events(t testing.TB, log string) (all []event) {
	t.Helper()
	for line := range strings.Lines(log) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the audit log has the line %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// read takes away what was used, and keeps what was denied.
func (a *audit) read(all []event) {
	meant := denials()
	for i := range all {
		e := &all[i]
		a.requests[e.User.Username]++
		if e.allowed() {
			left := a.unused[e.role()]
			delete(left, e.right())
			delete(left, e.right()+" "+e.ObjectRef.Name)
			if e.ResponseStatus.Code == http.StatusCreated { // an apply of what was not there takes the right to create it, too
				delete(left, "create"+strings.TrimPrefix(e.right(), "patch"))
			}
			continue
		}
		request := e.User.Username + ": " + e.right() + " " + e.ObjectRef.Name
		if meant[request] != "" && e.Annotations[decisionNote] == "allow" {
			a.probes[request]++
			continue
		}
		a.denied = append(a.denied, fmt.Sprintf("%s: %s: %d %s", request, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message))
	}
}

// left are the rights that nobody has used, by role, sorted.
//
// The rights to EvictionRequests are left out: the server here does not serve them. Package drain/kube tests each of
// them on one that does.
func (a *audit) left() (all []string) {
	for _, role := range slices.Sorted(maps.Keys(a.unused)) {
		for _, right := range slices.Sorted(maps.Keys(a.unused[role])) {
			if strings.Contains(right, " lifecycle.k8s.io/") {
				continue
			}
			all = append(all, role+": "+right)
		}
	}
	return all
}

// docs/security-evidence.md names every request that is meant to be denied, with the reason.
func TestSecurityPageHasTheDenials(t *testing.T) {
	page := read(t, root+"/docs/security-evidence.md")
	for request, why := range denials() {
		name := request[strings.LastIndex(request, " ")+1:]
		if !strings.Contains(page, "the Lease `"+name+"` in `"+agentNamespace+"`") || !strings.Contains(page, why) {
			t.Errorf("docs/security-evidence.md does not say that %q is denied, as %s", request, why)
		}
	}
	_, table, _ := strings.Cut(page, "| request | why |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if rows := strings.Count(table+"\n", "\n"); rows != len(denials()) {
		t.Errorf("docs/security-evidence.md has %d requests that are meant to be denied, and there are %d", rows, len(denials()))
	}
}

// A right that is used by nobody is found, and so is a request that was denied by a role or by a policy; one that is meant to be denied is not.
func TestAuditFindsWhatIsWrong(t *testing.T) {
	const (
		text = `{"verb":%q,"user":{"username":%q},"objectRef":{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"belay-agents","name":%q},` +
			`"responseStatus":{"code":%d},"annotations":{"authorization.k8s.io/decision":%q,"authorization.k8s.io/reason":%q}}` + "\n"
		role = `RBAC: allowed by RoleBinding "belay-agent/belay-agents" of Role "belay-agent" to ServiceAccount "belay-agent/belay-agents"`
	)
	line := func(verb, lease string, code int) string {
		return fmt.Sprintf(text, verb, agentUser, lease, code, "allow", role)
	}
	a := newAudit(t, build(t, "agent"))
	a.read(events(t, line("get", "a", 404)+line("create", "a", 201)+line("update", "a", 409)+line("create", update.ProbedLease, 403)))
	const given = "Role/belay-agents/belay-agent: "
	if left := a.left(); !slices.Contains(left, given+"delete coordination.k8s.io/leases") || slices.Contains(left, given+"update coordination.k8s.io/leases") {
		t.Errorf("not used are %q, want the deletion of Leases among them, and not the update", left)
	}
	if len(a.denied) > 0 || len(a.probes) != 1 || a.requests[agentUser] != 4 {
		t.Errorf("denied are %q, probes are %v, of %v: want none, and one, of 4", a.denied, a.probes, a.requests)
	}
	a.read(events(t, line("delete", "b", 403)+line("create", "b", 403)+fmt.Sprintf(text, "patch", agentUser, "b", 403, "forbid", "")+
		fmt.Sprintf(text, "create", agentUser, update.ProbedLease, 403, "forbid", "")+fmt.Sprintf(text, "create", controllerUser, update.ProbedLease, 403, "allow", role)))
	if left := a.left(); len(a.denied) != 5 || !slices.Contains(left, given+"delete coordination.k8s.io/leases") {
		t.Errorf("denied are %q, not used %q: want five, and the deletion, as it was denied", a.denied, left)
	}
	const create = given + "create coordination.k8s.io/leases"
	applied := newAudit(t, build(t, "agent"))
	if applied.read(events(t, line("patch", "a", 200))); !slices.Contains(applied.left(), create) {
		t.Error("a patch of what was there has taken the right to create it")
	}
	if applied.read(events(t, line("patch", "a", 201))); slices.Contains(applied.left(), create) {
		t.Error("an apply of what was not there has not taken the right to create it")
	}
	for role := range newAudit(t, build(t, ".")).unused {
		if strings.Contains(role, "viewer") || strings.Contains(role, "operator") {
			t.Errorf("%s is audited, and is of people, who are not there", role)
		}
	}
}
