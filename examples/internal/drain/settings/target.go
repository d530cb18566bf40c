// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Cluster says which API server is asked, as whom.
type Cluster struct{ Kubeconfig, Context string }

// AddFlags adds the flags with their defaults.
func (c *Cluster) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty means $KUBECONFIG, ~/.kube/config, or the pod that this runs in")
	f.StringVar(&c.Context, "context", "", "context of the kubeconfig; empty means its current one")
}

// Holder says in whose name nodes are held.
type Holder struct {
	Name string
	// NodeConditions also tells drains in the conditions of Nodes, as KEP-5683 names them, and removes those.
	NodeConditions bool
}

// AddFlags adds the flag. Its default is the user of this machine.
func (h *Holder) AddFlags(f *pflag.FlagSet) {
	name := ""
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = "drain/" + u.Username
	}
	f.StringVar(&h.Name, "holder", name, "who holds the nodes: must be the same to release them, and differ from everybody else's")
	f.BoolVar(&h.NodeConditions, "node-conditions", false, "tell drains in the conditions of Nodes: "+
		"DrainInProgress, Drained, MaintenancePlanned and MaintenanceInProgress; a release removes them where it has this flag too")
}

func (h *Holder) validate(p *problems) {
	p.need(h.Name != "", "holder", h.Name, "must say who holds the nodes, such as drain/jane")
}

// Nodes says which nodes are meant: by name or by label.
type Nodes struct {
	// Names may have the forms of kubectl, node/n1 and nodes/n1. Validation takes the kind off.
	Names    []string
	Selector string
	MaxNodes string
}

// AddFlags adds the flags with their defaults.
func (n *Nodes) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&n.Selector, "selector", "l", "", "label selector of the nodes, in place of their names")
}

// nodeKinds are the names of the resource that kubectl takes before a slash.
var nodeKinds = []string{"node", "nodes", "no", "node.v1.", "nodes.v1."}

// AddMaxNodes adds the flag for how many at once.
func (n *Nodes) AddMaxNodes(f *pflag.FlagSet) {
	f.StringVar(&n.MaxNodes, "max-nodes", "1", "how many nodes may be draining at once: a number, or a percent of the given nodes")
}

// Max is MaxNodes as the library takes it.
func (n *Nodes) Max() intstr.IntOrString { return intstr.Parse(n.MaxNodes) }

func (n *Nodes) validate(p *problems) {
	switch {
	case len(n.Names) == 0 && n.Selector == "":
		p.add(errors.New("give the names of nodes, or --selector"))
	case len(n.Names) > 0 && n.Selector != "":
		p.add(errors.New("give the names of nodes or --selector, not both"))
	}
	for i, arg := range n.Names {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			kind, name = "node", arg
		}
		if !slices.Contains(nodeKinds, strings.ToLower(kind)) {
			p.add(fmt.Errorf("%q is no node: write NAME, node/NAME or nodes/NAME", arg))
			continue
		}
		n.Names[i] = name
		if problem := validation.IsDNS1123Subdomain(name); len(problem) > 0 {
			p.add(fmt.Errorf("node %q is no name of a node: %s", name, problem[0]))
		}
		if slices.Contains(n.Names[:i], name) {
			p.add(fmt.Errorf("node %q is given twice", name))
		}
	}
	_, err := labels.Parse(n.Selector)
	p.need(err == nil, "selector", n.Selector, fmt.Sprintf("must be a label selector, such as pool=blue,zone!=a: %v", err))
}

func (n *Nodes) validateMax(p *problems) {
	v := n.Max()
	ok := v.Type == intstr.Int && v.IntVal > 0
	if v.Type == intstr.String {
		percent, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, false)
		ok = err == nil && percent > 0 && percent <= 100
	}
	p.need(ok, "max-nodes", n.MaxNodes, "must be a number from 1, or a percent from 1% to 100%")
}

// Format is how the result is printed: FormatText or FormatJSON.
type Format struct{ Name string }

// The formats.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// AddFlags adds the flag.
func (o *Format) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.Name, "output", "o", FormatText, "text or json; with json, standard output holds the final status alone, and progress goes to standard error")
}

// JSON reports whether a program reads the result.
func (o *Format) JSON() bool { return o.Name == FormatJSON }

func (o *Format) validate(p *problems) {
	p.need(o.Name == FormatText || o.Name == FormatJSON, "output", o.Name, "must be text or json")
}

// positive checks a duration.
func (p *problems) positive(flag string, d time.Duration, example string) {
	p.need(d > 0, flag, d, "must be more than 0, such as "+example)
}
