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
	// pathExpression is Resource.subpath of what is written.
	pathExpression = "request.resource.resource" +
		" + (request.?subResource.orValue('') == '' ? '' : '/' + request.?subResource.orValue(''))" + scopeExpression
	// kindExpression is Resource.path of what is written.
	kindExpression  = "request.resource.resource" + scopeExpression
	scopeExpression = " + (request.resource.?group.orValue('') == '' ? '' : '.' + request.resource.?group.orValue(''))" +
		" + (request.?namespace.orValue('') == '' ? '' : ' in ' + request.?namespace.orValue(''))"
)

// callerExpression selects the agents. It is a match condition, which sees no variables.
func callerExpression(o Options) string {
	var callers []string
	if o.ServiceAccount.Name != "" {
		callers = append(callers, userExpression+" == "+quote(serviceAccountUser(o)))
	}
	if o.NodeUsers {
		var guarded []string
		for _, r := range o.Resources {
			guarded = append(guarded, r.path())
		}
		callers = append(callers, userExpression+".startsWith("+quote(nodeUserPrefix)+") && "+kindExpression+" in "+list(guarded))
	}
	return strings.Join(callers, " || ")
}

func serviceAccountUser(o Options) string {
	return "system:serviceaccount:" + o.ServiceAccount.Namespace + ":" + o.ServiceAccount.Name
}

func variables(o Options) []admissionregistrationv1.Variable {
	nodes, nodeUser := claim(nodeNameClaim), "false"
	if o.NodeUsers {
		nodeUser = userExpression + ".startsWith(" + quote(nodeUserPrefix) + ")"
		nodes = fmt.Sprintf("variables.nodeUser ? [%s.substring(%d)] : %s", userExpression, len(nodeUserPrefix), nodes)
	}
	return append([]admissionregistrationv1.Variable{
		{Name: "nodeUser", Expression: nodeUser},
		{Name: "nodes", Expression: nodes},
		{Name: "nodeUIDs", Expression: claim(nodeUIDClaim)},
		{Name: "pods", Expression: claim(podNameClaim)},
		{Name: "objects", Expression: "[object, oldObject].filter(o, o != null)"},
		{Name: "names", Expression: "variables.objects.map(o, o.?metadata.?name.orValue(''))"},
		{Name: "kind", Expression: kindExpression},
		{Name: "write", Expression: "request.operation + ' ' + " + pathExpression},
		{Name: "name", Expression: prefixExpression(o) + " + variables.nodes.join(',')"},
		{Name: "target", Expression: "variables.kind + ' \"' + (variables.names.size() > 0 ? variables.names[0] : '') + '\"'"},
	}, nodeVariables(o)...)
}

func claim(key string) string {
	return "request.userInfo.?extra[?" + quote(key) + "].orValue([])"
}

// prefixExpression is the prefix of the kind that is written.
func prefixExpression(o Options) string {
	var pairs []string
	for _, r := range o.Resources {
		if r.Prefix != "" {
			pairs = append(pairs, quote(r.path())+": "+quote(r.Prefix))
		}
	}
	if len(pairs) == 0 {
		return "''"
	}
	return "{" + strings.Join(pairs, ", ") + "}[?variables.kind].orValue('')"
}

const boundExpression = "variables.nodes.size() == 1 && variables.nodes[0] != ''" +
	" && (variables.nodeUser || variables.nodeUIDs.size() == 1 && variables.pods.size() == 1)"

const boundMessage = `'the token of ' + request.userInfo.?username.orValue('') + ' names ' + string(variables.nodes.size()) + ' nodes, ' + ` +
	`string(variables.nodeUIDs.size()) + ' node UIDs and ' + string(variables.pods.size()) + ' pods, but must name one of each to write ' + ` +
	`variables.kind + ': use the projected token of a pod that runs on a node, on Kubernetes 1.30 or newer'`

// writes are what an agent may do, as operation and path.
func writes(o Options) []string {
	var ws []string
	for _, r := range o.Resources {
		for _, v := range r.Verbs {
			if slices.Contains(writeVerbs, v) {
				ws = append(ws, operation(v)+" "+r.path())
			}
		}
		for _, s := range r.Subresources {
			ws = append(ws, "UPDATE "+r.subpath(s))
		}
	}
	if len(o.NodeConditions) > 0 {
		ws = append(ws, "UPDATE nodes/status")
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

func writeMessage(o Options) string {
	may := strings.Join(writes(o), ", ")
	return `'the agent of node "' + variables.nodes.join(',') + '" may not ' + variables.write + ' for ' + variables.target + ` +
		quote(`: it may `+may)
}

const nameExpression = "variables.nodes.size() == 1 && variables.names.size() > 0 && variables.names.all(n, n == variables.name)"

const nameMessage = `variables.target + ' does not belong to node "' + variables.nodes.join(',') + '": the name must be "' + variables.name + '"'`

// ownerExpression wants one owner of kind Node in the old and in the new object: that with the UID of the caller's node.
func ownerExpression(o Options) string {
	exempt := []string{"nodes"}
	for _, r := range o.Resources {
		if r.NotOwned && !r.isNode() {
			exempt = append(exempt, r.path())
		}
	}
	return "variables.kind in " + list(exempt) + " || variables.objects.all(o, o.?metadata.?ownerReferences.orValue([])" +
		".filter(r, r.?kind.orValue('') == 'Node' && r.?apiVersion.orValue('') == 'v1')" +
		".map(r, variables.nodeUser ? r.?name.orValue('') : r.?uid.orValue('')) == (variables.nodeUser ? variables.nodes : variables.nodeUIDs))"
}

const ownerMessage = `variables.target + ' does not belong to this node "' + variables.nodes.join(',') + ` +
	`'": before and after the write it must have one owner of kind Node, the one with the UID ' + variables.nodeUIDs.join(',')`

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
