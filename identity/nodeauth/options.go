// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options say whom the policy guards and what an agent may do. What they don't name, it may not write.
type Options struct {
	// Name is that of the policy, its binding, the roles and the FlowSchema. Required.
	Name string
	// ServiceAccount is that of the agents' DaemonSet. Required unless NodeUsers is set.
	ServiceAccount types.NamespacedName
	// NodeUsers guards callers with the user name system:node:<name> too, for agents outside pods that use the kubelet's certificate. Resources
	// are custom ones then: NodeRestriction keeps such a caller from Leases other than the kubelet's. It has no Node UID: the owner
	// of an object is compared by name, and a Node that was made again under its name counts as the same.
	NodeUsers bool
	// Resources are what agents read and write, each object named after its node.
	Resources []Resource
	// NodeConditions are the condition types that an agent writes in the status of its own Node, by patch. Empty means no write to a Node.
	NodeConditions []corev1.NodeConditionType
	// NodePods lets an agent read the pods of its own node, and of no other, with a client from [AssociatedNode].
	NodePods bool
}

// A Resource is a kind of object of which each node has its own.
type Resource struct {
	// Group and Resource are the names by which RBAC knows it: "belay.dev" and "nodeconfigs". Resource is required.
	Group, Resource string
	// Namespace of the objects. Empty means that they have none. Where it is forgotten for a kind that has namespaces, an agent writes nothing of the
	// kind, in no namespace.
	Namespace string
	// Prefix and the name of the node make the name of the object: "agent-" is that of identity.NodeName("agent", node). In one namespace no other component's agents should have a prefix that
	// begins with this one: the name of a node could make up the difference.
	Prefix string
	// Verbs are what an agent may do to the objects: get, list, watch, create, update, patch, delete. Reads cannot be narrowed to one node.
	Verbs []string
	// Subresources are those that an agent may patch and update: for most, "status" alone.
	Subresources []string
	// NotOwned says that the objects need no owner. Otherwise an agent writes only what has one owner of kind Node: the
	// Node that its own pod is on, by UID.
	NotOwned bool
}

// name is that of the resource whatever the namespace: "nodeconfigs.belay.dev".
func (r Resource) name() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// kind names the resource as messages and the policy do: "nodeconfigs.belay.dev", "leases.coordination.k8s.io in agents".
func (r Resource) kind() string {
	if r.Namespace == "" {
		return r.name()
	}
	return r.name() + " in " + r.Namespace
}

func (r Resource) isNode() bool  { return r.Group == "" && r.Resource == "nodes" }
func (r Resource) isLease() bool { return r.Group == leaseGroup && r.Resource == "leases" }

const leaseGroup = "coordination.k8s.io"

// readVerbs and writeVerbs are what Resource.Verbs may hold. deletecollection is for many objects by its nature, an agent has one.
var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "update", "patch", "delete"}
)

// longestName leaves room for what Objects adds to Options.Name.
const longestName = validation.DNS1123SubdomainMaxLength - len(nodeSuffix)

// Validate returns every fault of the options, each with the field, its value and what would be right.
func (o Options) Validate() error {
	var errs field.ErrorList
	name := field.NewPath("Name")
	errs = append(errs, check(name, o.Name, validation.IsDNS1123Subdomain)...)
	if len(o.Name) > longestName {
		errs = append(errs, field.TooLong(name, o.Name, longestName))
	}
	errs = append(errs, o.validateCallers()...)
	if len(o.Resources) == 0 && len(o.NodeConditions) == 0 {
		errs = append(errs, field.Required(field.NewPath("Resources"), "name what the agents write, or NodeConditions"))
	}
	seen := map[string]bool{}
	for i, r := range o.Resources {
		at := field.NewPath("Resources").Index(i)
		errs = append(errs, r.validate(at, o.NodeUsers)...)
		if seen[r.kind()] {
			errs = append(errs, field.Duplicate(at, r.kind()))
		}
		seen[r.kind()] = true
	}
	return append(errs, o.validateConditions()...).ToAggregate()
}

func (o Options) validateCallers() field.ErrorList {
	at := field.NewPath("ServiceAccount")
	if o.ServiceAccount == (types.NamespacedName{}) {
		var errs field.ErrorList
		if !o.NodeUsers {
			errs = append(errs, field.Required(at, "the namespace and name of the agents' service account, unless NodeUsers is set"))
		}
		if o.NodePods {
			errs = append(errs, field.Invalid(field.NewPath("NodePods"), true, "needs a ServiceAccount: a node user may read the pods of its node as it is"))
		}
		return errs
	}
	errs := check(at.Child("Namespace"), o.ServiceAccount.Namespace, validation.IsDNS1123Label)
	return append(errs, check(at.Child("Name"), o.ServiceAccount.Name, validation.IsDNS1123Subdomain)...)
}

// validateConditions refuses the conditions by which the kubelet says whether pods can run: others act on those.
func (o Options) validateConditions() field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("NodeConditions")
	if len(o.NodeConditions) > 0 && o.ServiceAccount.Name == "" {
		errs = append(errs, field.Invalid(at, o.NodeConditions, "needs a ServiceAccount: what node users write to Nodes is not guarded"))
	}
	kubelets := []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}
	for i, c := range o.NodeConditions {
		if slices.Contains(kubelets, c) {
			errs = append(errs, field.Invalid(at.Index(i), c, "belongs to the kubelet: must be a condition type of the agent's own"))
		}
		if slices.Contains(o.NodeConditions[:i], c) {
			errs = append(errs, field.Duplicate(at.Index(i), c))
		}
		errs = append(errs, check(at.Index(i), string(c), validation.IsQualifiedName)...)
	}
	return errs
}

func (r Resource) validate(at *field.Path, nodeUsers bool) field.ErrorList {
	errs := check(at.Child("Resource"), r.Resource, validation.IsDNS1123Label)
	if r.Group != "" {
		errs = append(errs, check(at.Child("Group"), r.Group, validation.IsDNS1123Subdomain)...)
	}
	if r.Namespace != "" {
		errs = append(errs, check(at.Child("Namespace"), r.Namespace, validation.IsDNS1123Label)...)
	}
	if r.Prefix != "" && len(validation.IsDNS1123Subdomain(r.Prefix+"n")) > 0 {
		errs = append(errs, field.Invalid(at.Child("Prefix"), r.Prefix, "must make a legal name with the name of a node behind it, for example \"agent-\""))
	}
	for i, s := range r.Subresources {
		errs = append(errs, check(at.Child("Subresources").Index(i), s, validation.IsDNS1123Label)...)
	}
	errs = append(errs, r.validateVerbs(at)...)
	return append(errs, r.validateKind(at, nodeUsers)...)
}

// validateKind reports what cannot be guarded, or not so.
func (r Resource) validateKind(at *field.Path, nodeUsers bool) field.ErrorList {
	var errs field.ErrorList
	if r.isLease() && r.Namespace == "" {
		errs = append(errs, field.Required(at.Child("Namespace"), "Leases are in one"))
	}
	if r.Group == "" && r.Resource == "namespaces" {
		errs = append(errs, field.Invalid(at, r.kind(), "cannot belong to a node: the policy would be applied to it by its own labels"))
	}
	if r.isNode() && (r.writes() || r.Prefix != "" || r.Namespace != "") {
		errs = append(errs, field.Invalid(at, r.kind(), "may be read only, by get, list and watch: name the conditions to write in NodeConditions"))
	}
	if nodeUsers && !r.isCustom() {
		errs = append(errs, field.Invalid(at, r.kind(), "must be a custom resource with NodeUsers: kubelets write others of their own, and no Lease but theirs"))
	}
	return errs
}

func (r Resource) validateVerbs(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Verbs) == 0 && len(r.Subresources) == 0 {
		errs = append(errs, field.Required(at.Child("Verbs"), "name what an agent may do, or Subresources"))
	}
	for i, v := range r.Verbs {
		if legal := slices.Concat(readVerbs, writeVerbs); !slices.Contains(legal, v) {
			errs = append(errs, field.NotSupported(at.Child("Verbs").Index(i), v, legal))
		}
	}
	return errs
}

// writes reports whether an agent may change anything of it.
func (r Resource) writes() bool {
	return len(r.Subresources) > 0 || slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains(writeVerbs, v) })
}

// isCustom reports whether the resource is not one of Kubernetes itself.
func (r Resource) isCustom() bool {
	return strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, ".k8s.io")
}

// check turns what a validation function says about a value into errors of a field.
func check(at *field.Path, value string, faults func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "must not be empty")}
	}
	var errs field.ErrorList
	for _, fault := range faults(value) {
		errs = append(errs, field.Invalid(at, value, fault))
	}
	return errs
}
