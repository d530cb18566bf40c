// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Every expression is total: where a field is missing it takes another value, never an error. An error would be a denial too, but
// with 422 Invalid and a text that helps nobody.
//
// The server evaluates every validation and every message of a policy for each write that it matches, also where nothing is wrong, and the
// variables anew for the messages. That is why there is one validation, with the first rule that is broken in a variable: one of its
// own for each rule takes twice the time.

// Claims of a token, as the API server hands them to admission and in a TokenReview.
const (
	nodeNameClaim = "authentication.kubernetes.io/node-name"
	nodeUIDClaim  = "authentication.kubernetes.io/node-uid"
	podNameClaim  = "authentication.kubernetes.io/pod-name"
	podUIDClaim   = "authentication.kubernetes.io/pod-uid"
)

const nodeUserPrefix = "system:node:"

const (
	userExpression = "request.userInfo.?username.orValue('')"
	// kindExpression is Resource.kind of what is written.
	kindExpression = "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)" +
		" + (has(request.namespace) ? ' in ' + request.namespace : '')"
)

// callerExpression selects the agents. It is a match condition, which sees no variables.
func callerExpression(o Options) string {
	var callers []string
	if o.ServiceAccount.Name != "" {
		callers = append(callers, userExpression+" == "+quote(serviceAccountUser(o.ServiceAccount)))
	}
	if o.NodeUsers {
		var guarded []string
		for _, r := range o.Resources {
			guarded = append(guarded, r.kind())
		}
		callers = append(callers, userExpression+".startsWith("+quote(nodeUserPrefix)+") && "+kindExpression+" in "+list(guarded))
	}
	return strings.Join(callers, " || ")
}

func variables(o Options) []admissionregistrationv1.Variable {
	node := only(nodeNameClaim)
	if o.NodeUsers {
		node = fmt.Sprintf("%s.startsWith('%s') ? %[1]s.substring(%[3]d) : %[4]s", userExpression, nodeUserPrefix, len(nodeUserPrefix), node)
	}
	return []admissionregistrationv1.Variable{
		{Name: "node", Expression: node},
		{Name: "nodeUID", Expression: only(nodeUIDClaim)},
		{Name: "kind", Expression: kindExpression},
		{Name: "write", Expression: "request.operation + ' ' + (has(request.subResource) ? request.subResource + ' of ' : '') + variables.kind"},
		{Name: "name", Expression: prefixExpression(o) + "variables.node"},
		{Name: "target", Expression: "variables.kind + ' \"' + (object == null ? dyn(oldObject) : dyn(object)).?metadata.?name.orValue('') + '\"'"},
		{Name: "fault", Expression: faultExpression(o)},
	}
}

// only is the value of a claim that has exactly one, else empty.
func only(claim string) string {
	values := values(claim)
	return values + ".size() == 1 ? " + values + "[0] : ''"
}

func values(claim string) string { return "request.userInfo.?extra[?" + quote(claim) + "].orValue([])" }

// prefixExpression is the prefix of the kind that is written.
func prefixExpression(o Options) string {
	var pairs []string
	for _, r := range o.Resources {
		if r.Prefix != "" {
			pairs = append(pairs, quote(r.kind())+": "+quote(r.Prefix))
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ", ") + "}[?variables.kind].orValue('') + "
}

// A rule must hold for a write, and says otherwise what is wrong and what would be right. Both are expressions.
type policyRule struct{ holds, otherwise string }

// faultExpression is what the first rule says that does not hold, or empty.
func faultExpression(o Options) string {
	rules := append([]policyRule{boundRule(o), writeRule(o), nameRule(), ownerRule(o)}, nodeRulesOf(o)...)
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "!(%s) ? %s :\n", r.holds, r.otherwise)
	}
	return b.String() + "''"
}

// boundRule wants a token with one node and one pod: one that is bound to a Node alone is not an agent's.
func boundRule(o Options) policyRule {
	holds := "variables.node != '' && variables.nodeUID != '' && " + values(podNameClaim) + ".size() == 1"
	if o.NodeUsers {
		holds = "variables.node != '' && (" + nodeUserExpression + " || variables.nodeUID != '' && " + values(podNameClaim) + ".size() == 1)"
	}
	count := func(claim string) string { return "string(" + values(claim) + ".size())" }
	return policyRule{holds, "'the token of ' + " + userExpression + " + ' names ' + " + count(nodeNameClaim) + " + ' nodes, ' + " + count(nodeUIDClaim) +
		" + ' node UIDs and ' + " + count(podNameClaim) + " + ' pods, but must name one of each to write ' + variables.target" +
		" + ': use the projected token of a pod that runs on a node, on Kubernetes 1.30 or newer'"}
}

const nodeUserExpression = userExpression + ".startsWith('" + nodeUserPrefix + "')"

func writeRule(o Options) policyRule {
	return policyRule{
		"variables.write in " + list(writes(o)),
		`'the agent of node "' + variables.node + '" may not ' + variables.write + ', here ' + variables.target + '; it may ` + strings.Join(writes(o), ", ") + "'",
	}
}

// writes are what an agent may do, as operation, subresource and kind.
func writes(o Options) []string {
	var ws []string
	for _, r := range o.Resources {
		for _, v := range r.Verbs {
			if slices.Contains(writeVerbs, v) {
				ws = append(ws, operation(v)+" "+r.kind())
			}
		}
		for _, s := range r.Subresources {
			ws = append(ws, "UPDATE "+s+" of "+r.kind())
		}
	}
	if len(o.NodeConditions) > 0 {
		ws = append(ws, "UPDATE status of nodes")
	}
	slices.Sort(ws)
	return slices.Compact(ws)
}

func operation(verb string) string {
	if verb == "patch" {
		verb = "update"
	}
	return strings.ToUpper(verb)
}

// nameRule looks at the objects and not at request.name, which is empty for generateName and deletecollection.
func nameRule() policyRule {
	return policyRule{
		each("%[1]s.?metadata.?name.orValue('') == variables.name"),
		`variables.target + ' does not belong to node "' + variables.node + '": the name must be "' + variables.name + '"'`,
	}
}

// ownerRule wants one owner of kind Node before and after the write: that with the UID of the caller's node.
func ownerRule(o Options) policyRule {
	exempt := []string{"nodes"}
	for _, r := range o.Resources {
		if r.NotOwned && !r.isNode() {
			exempt = append(exempt, r.kind())
		}
	}
	owner, want := "r.?uid.orValue('')", "variables.nodeUID"
	if o.NodeUsers {
		owner, want = nodeUserExpression+" ? r.?name.orValue('') : "+owner, "("+nodeUserExpression+" ? variables.node : "+want+")"
	}
	return policyRule{
		"variables.kind in " + list(exempt) + " || " + each("%[1]s.?metadata.?ownerReferences.orValue([])"+
			".filter(r, r.?kind.orValue('') == 'Node' && r.?apiVersion.orValue('') == 'v1').map(r, "+owner+") == ["+want+"]"),
		`variables.target + ' does not belong to this node "' + variables.node + '": before and after the write it must have one owner of kind Node, ' +
			'the one with the UID ' + variables.nodeUID`,
	}
}

// each says of the object before and after the write, as far as there is one, what it says of %[1]s.
func each(says string) string {
	return "(object == null || " + fmt.Sprintf(says, "object") + ") && (oldObject == null || " + fmt.Sprintf(says, "oldObject") + ")"
}

// list writes strings as a CEL list, which is of strings also where it is empty.
func list(items []string) string {
	if len(items) == 0 {
		return "['']"
	}
	var quoted []string
	for _, i := range items {
		quoted = append(quoted, quote(i))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes a string of CEL. Options.Validate has let no character through that would need more.
func quote(s string) string { return "'" + s + "'" }
