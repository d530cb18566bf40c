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
// The server evaluates every validation and every message of a policy for each write that it matches, also where nothing is wrong, the variables
// anew for the messages, and turns the object before and after into maps again for each of these steps. Match conditions are one step. That is why
// one of them holds for nothing but a write with a fault: the validations are there to say what the fault is. Both are made of the same
// requirements.

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
	// nameExpression and kindExpression are Resource.name and Resource.kind of what is written.
	nameExpression = "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)"
	kindExpression = nameExpression + " + (has(request.namespace) ? ' in ' + request.namespace : '')"
)

// callerExpression selects the agents. Of a node user it takes the kinds in every namespace: were it
// to ask for the right one, a kind whose Namespace was forgotten would not be guarded at all.
func callerExpression(o Options) string {
	var callers []string
	if o.ServiceAccount.Name != "" {
		callers = append(callers, userExpression+" == "+quote(serviceAccountUser(o.ServiceAccount)))
	}
	if o.NodeUsers {
		var guarded []string
		for _, r := range o.Resources {
			guarded = append(guarded, r.name())
		}
		callers = append(callers, userExpression+".startsWith("+quote(nodeUserPrefix)+") && "+nameExpression+" in "+list(guarded))
	}
	return strings.Join(callers, " || ")
}

// placeExpression lets go what is written of the confined kinds in other namespaces.
func placeExpression(confined, namespaces []string) string {
	return "!(" + nameExpression + " in " + list(confined) + ") || !has(request.namespace) || request.namespace in " + list(namespaces)
}

// facts are what the requirements speak of, total for every write.
func facts(o Options) []admissionregistrationv1.Variable {
	if len(o.NodeConditions) == 0 {
		return callerFacts(o)
	}
	return append(callerFacts(o), nodeFacts()...)
}

// callerFacts are the name and the UID of the caller's node, empty where the token has none or several.
func callerFacts(o Options) []admissionregistrationv1.Variable {
	node := only(nodeNameClaim)
	if o.NodeUsers {
		node = fmt.Sprintf("%s ? %s.substring(%d) : %s", nodeUserExpression, userExpression, len(nodeUserPrefix), node)
	}
	return []admissionregistrationv1.Variable{{Name: "node", Expression: node}, {Name: "nodeUID", Expression: only(nodeUIDClaim)}}
}

// variables are the facts, and what is said where something is wrong.
func variables(o Options) []admissionregistrationv1.Variable {
	return append(facts(o),
		admissionregistrationv1.Variable{Name: "kind", Expression: kindExpression},
		admissionregistrationv1.Variable{Name: "write", Expression: "request.operation + ' ' + (has(request.subResource) ? request.subResource + ' of ' : '') + variables.kind"},
		admissionregistrationv1.Variable{Name: "target", Expression: "variables.kind + ' \"' + (object == null ? dyn(oldObject) : dyn(object)).?metadata.?name.orValue('') + '\"'"},
		admissionregistrationv1.Variable{Name: "fault", Expression: faultExpression(o)},
	)
}

// faultyExpression is the match condition for writes with a fault. A match condition sees no variables: what they stand for is written in their
// places, in the shortest form that works once it is plain that all of it is there. A write of which that is not plain counts as faulty: the
// validations look closer.
func faultyExpression(o Options) string {
	plain, places := plainFacts(o)
	return "!(" + strings.Join(append(plain, "("+strings.NewReplacer(places...).Replace(lawfulExpression(o))+")"), " &&\n") + ")"
}

// plainFacts are what must be plain of a write, and then for each of the facts what may stand in its place.
func plainFacts(o Options) (plain, places []string) {
	if len(o.NodeConditions) > 0 {
		plain = []string{"(!(" + nodeStatus().is() + ") || object == null || oldObject == null || " +
			"has(oldObject.metadata) && has(object.metadata) && has(oldObject.status) && has(object.status))"}
		places = []string{
			"variables.oldMetadata", "oldObject.metadata", "variables.newMetadata", "object.metadata",
			"variables.oldStatus", "oldObject.status", "variables.newStatus", "object.status",
		}
	}
	if o.NodeUsers { // they have no claims, so nothing is plain of their callers
		for _, f := range slices.Backward(callerFacts(o)) { // of names that begin alike the longer must come first
			places = append(places, "variables."+f.Name, "("+f.Expression+")")
		}
		return plain, places
	}
	const extra = "request.userInfo.extra"
	bound := []string{"has(" + extra + ")"}
	for _, claim := range []struct{ key, fact string }{{nodeUIDClaim, "variables.nodeUID"}, {nodeNameClaim, "variables.node"}} {
		bound = append(bound, fmt.Sprintf("%[1]s in %[2]s && size(%[2]s[%[1]s]) == 1", quote(claim.key), extra))
		places = append(places, claim.fact, extra+"["+quote(claim.key)+"][0]")
	}
	return append(bound, plain...), places
}

// only is the value of a claim that has exactly one, else empty.
func only(claim string) string {
	values := values(claim)
	return values + ".size() == 1 ? " + values + "[0] : ''"
}

func values(claim string) string { return "request.userInfo.?extra[?" + quote(claim) + "].orValue([])" }

// A requirement must hold for a write; otherwise it says what is wrong and what would be right. Both are expressions.
type requirement struct{ holds, otherwise string }

// kindRules are what is wanted of the writes of a kind.
type kindRules struct {
	is    string
	wants []requirement
}

func rulesByKind(o Options) []kindRules {
	var all []kindRules
	for _, r := range heartbeatsFirst(o.Resources) {
		if r.writes() {
			rs := []requirement{mayWrite(o, r), hasName(r)}
			if !r.NotOwned {
				rs = append(rs, hasOwner(o))
			}
			all = append(all, kindRules{r.is(), rs})
		}
	}
	if len(o.NodeConditions) > 0 {
		status := nodeStatus()
		all = append(all, kindRules{status.is(), []requirement{mayWrite(o, status), hasName(status), isNode()}})
	}
	return all
}

// heartbeatsFirst puts Leases first: most writes are theirs, and the kinds are gone through in turn.
func heartbeatsFirst(resources []Resource) []Resource {
	others := slices.DeleteFunc(slices.Clone(resources), Resource.isLease)
	leases := slices.DeleteFunc(slices.Clone(resources), func(r Resource) bool { return !r.isLease() })
	return append(leases, others...)
}

// lawfulExpression says that a write meets every requirement.
func lawfulExpression(o Options) string {
	var kinds strings.Builder
	for _, k := range rulesByKind(o) {
		var all []string
		for _, r := range k.wants {
			all = append(all, "("+r.holds+")")
		}
		fmt.Fprintf(&kinds, "%s ? (%s) :\n", k.is, strings.Join(all, " &&\n"))
	}
	lawful := "(" + isBound(o).holds + ") &&\n(" + kinds.String() + "false)"
	if len(o.NodeConditions) > 0 {
		lawful += " &&\n(" + nodeExpression(o) + ")"
	}
	return lawful
}

// faultExpression is what is wrong with a write, or empty.
func faultExpression(o Options) string {
	var kinds strings.Builder
	for _, k := range rulesByKind(o) {
		fmt.Fprintf(&kinds, "%s ? (%s) :\n", k.is, unless(k.wants, "''"))
	}
	return unless([]requirement{isBound(o)}, kinds.String()+mayNot(o))
}

// unless is what the first requirement says that does not hold, or else what comes behind them all.
func unless(rs []requirement, finally string) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "!(%s) ? %s :\n", r.holds, r.otherwise)
	}
	return b.String() + finally
}

// is says that what is written is of the kind.
func (r Resource) is() string {
	s := fmt.Sprintf("request.resource.resource == '%s' && request.resource.group == '%s' && ", r.Resource, r.Group)
	if r.Namespace == "" {
		return s + "!has(request.namespace)"
	}
	return s + "has(request.namespace) && request.namespace == " + quote(r.Namespace)
}

// isBound wants a token with one node and one pod: one that is bound to a Node alone is not an agent's.
func isBound(o Options) requirement {
	pod := "variables.nodeUID != '' && " + values(podNameClaim) + ".size() == 1"
	if o.NodeUsers {
		pod = "(" + nodeUserExpression + " || " + pod + ")"
	}
	count := func(claim string) string { return "string(" + values(claim) + ".size())" }
	return requirement{"variables.node != '' && " + pod, "'the token of ' + " + userExpression +
		" + ' names ' + " + count(nodeNameClaim) + " + ' nodes, ' + " + count(nodeUIDClaim) + " + ' node UIDs and ' + " + count(podNameClaim) +
		" + ' pods, but must name one of each to write ' + variables.target + ': use the projected token of a pod that runs on a node, on Kubernetes 1.30 or newer'"}
}

const nodeUserExpression = userExpression + ".startsWith('" + nodeUserPrefix + "')"

// mayWrite wants one of the operations on the objects, or an update of one of the subresources.
func mayWrite(o Options, r Resource) requirement {
	var operations, ways []string
	for _, v := range r.Verbs {
		if slices.Contains(writeVerbs, v) {
			operations = append(operations, operation(v))
		}
	}
	if len(operations) > 0 {
		ways = append(ways, "!has(request.subResource) && request.operation in "+list(operations))
	}
	if len(r.Subresources) > 0 {
		ways = append(ways, "has(request.subResource) && request.subResource in "+list(r.Subresources)+" && request.operation == 'UPDATE'")
	}
	return requirement{strings.Join(ways, " || "), mayNot(o)}
}

func operation(verb string) string {
	if verb == "patch" {
		verb = "update"
	}
	return strings.ToUpper(verb)
}

func mayNot(o Options) string {
	return `'the agent of node "' + variables.node + '" may not ' + variables.write + ', here ' + variables.target + '; it may ` + strings.Join(writes(o), ", ") + "'"
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

// hasName looks at the objects and not at request.name, which is empty for generateName and deletecollection.
func hasName(r Resource) requirement {
	name := "variables.node"
	if r.Prefix != "" {
		name = quote(r.Prefix) + " + " + name
	}
	return requirement{
		each("%[1]s.?metadata.?name.orValue('') == " + name),
		`variables.target + ' does not belong to node "' + variables.node + '": the name must be "' + ` + name + ` + '"'`,
	}
}

// hasOwner wants one owner of kind Node before and after the write: that with the UID of the caller's node.
func hasOwner(o Options) requirement {
	owner, want := "r.?uid.orValue('')", "variables.nodeUID"
	if o.NodeUsers {
		owner, want = nodeUserExpression+" ? r.?name.orValue('') : "+owner, nodeUserExpression+" ? variables.node : "+want
	}
	return requirement{
		each("%[1]s.?metadata.?ownerReferences.orValue([]).map(r, r.?kind.orValue('') == 'Node' && r.?apiVersion.orValue('') == 'v1', " +
			owner + ") == [" + want + "]"),
		`variables.target + ' does not belong to this node "' + variables.node + '": before and after the write it must have one owner of kind Node, ` +
			`the one with the UID ' + variables.nodeUID`,
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
