// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/belayproject/belay/drain"
	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// minLease is the shortest time after which a silent leader can be replaced: it renews once a second at most.
const minLease = 5 * time.Second

// longestPageName fits into the title of a window.
const longestPageName = 100

// A FlagError says which flag is wrong, its value, and what would be right.
type FlagError = drainsettings.FlagError

// Drains is what the controller is told of drains.
type Drains struct {
	// PolicyFile, if any, says how pods are treated by a drain, ForcedFile how when a rollout's policy is to go on past
	// what is in the way.
	PolicyFile, ForcedFile string
	// Evictions is how many a second may start.
	Evictions float64
	// NodeMaintenance has NodeMaintenance objects carried out.
	NodeMaintenance bool
	// EvictionRequests turns on the evictionrequest-controller and the default responder.
	EvictionRequests bool
	// NodeConditions also tells drains in the conditions of Nodes, as KEP-5683 names them.
	NodeConditions bool

	// Policy and Forced are what the files say, after Validate.
	Policy drain.Policy
	Forced *drain.Policy
}

// Run is what the controller is told.
type Run struct {
	// Kubeconfig is a file; empty means the pod that this runs in.
	Kubeconfig string
	// Domains are the disruption domains whose rollouts are looked after. Each has a leader of its own.
	Domains []string
	// Namespace holds the Leases by which leaders are elected, and the ConfigMap that is the operator's switch.
	Namespace string
	// Switch is the name of a ConfigMap there that switches everything off.
	Switch string
	// PodUID is the UID of the pod that this runs in, if it does: replicas on one node are told apart by it.
	PodUID string
	// Lease is how long a leader that is silent is waited for.
	Lease time.Duration
	// Listen is the address of the health endpoints and the metrics.
	Listen string
	// Page is the address of the fleet page, on a loopback interface; empty means that there is none. PageHosts are names under which it is known to a
	// proxy before it. PageName says to people which cluster it shows; empty means Machines.Cluster, or else where the API server is.
	Page      string
	PageHosts []string
	PageName  string
	// OwnNode is the node that this runs on, which is updated last.
	OwnNode string
	// BadConditions are further conditions of Nodes that are bad when True.
	BadConditions []string
	Drains
	// Stop is how long work that is under way may take to end.
	Stop time.Duration
	// MaxUnavailable is how many nodes of a domain may be disrupted at a time, by whatever rollouts and machines together; 0 leaves that to each of them.
	MaxUnavailable int
	// Machines and Agents are the parts that are off unless asked for.
	Machines Machines
	Agents   Agents
}

// AddFlags adds the flags with their defaults.
func (r *Run) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&r.Kubeconfig, "kubeconfig", "", "kubeconfig of the API server; empty means the pod that this runs in")
	f.StringSliceVar(&r.Domains, "domains", []string{v1alpha1.DefaultDomain}, "disruption domains whose rollouts are looked after, separated by commas")
	f.StringVar(&r.Namespace, "namespace", "belay-system", "namespace of the Leases by which replicas elect a leader, and of the ConfigMap --switch")
	f.StringVar(&r.Switch, "switch", "belay-controller", `name of a ConfigMap: with "true" as data.disabled no node is begun, and data.reason says why; without it all is on`)
	f.StringVar(&r.PodUID, "pod-uid", "", "UID of the pod that this runs in, from the downward API; empty where it runs in none")
	f.DurationVar(&r.Lease, "lease-duration", 15*time.Second, "how long a leader that is silent is waited for; at least 5s")
	f.StringVar(&r.Listen, "listen", "127.0.0.1:8473", "address of /healthz, /readyz and /metrics: an IP, which may be left out, and a port")
	f.StringVar(&r.Page, "page-bind-address", "", "loopback address of the fleet page, such as 127.0.0.1:8474, to be reached by kubectl port-forward; empty means no page")
	f.StringSliceVar(&r.PageHosts, "page-hosts", nil, "names by which a proxy before the fleet page asks for it, besides addresses and localhost, separated by commas")
	f.StringVar(&r.PageName, "page-name", "", "what the fleet page calls the cluster, such as prod-eu-1; empty means --cluster, or else the address of the API server")
	f.StringVar(&r.OwnNode, "own-node", "", "name of the node that this runs on, to update it last")
	f.StringSliceVar(&r.BadConditions, "bad-conditions", nil, "further conditions of Nodes that are bad when True, such as KernelDeadlock, separated by commas")
	f.StringVar(&r.PolicyFile, "drain-policy", "", "file with a drain.Policy in YAML or JSON; empty means the default one")
	f.StringVar(&r.ForcedFile, "forced-drain-policy", "", "the same for drains that are to go on past what is in their way; empty means no more than --drain-policy")
	f.BoolVar(&r.NodeConditions, "node-conditions", true, "tell drains in the conditions of Nodes: DrainInProgress, "+
		"Drained, MaintenancePlanned and MaintenanceInProgress")
	f.Float64Var(&r.Evictions, "rate", 20, "evictions a second at most, over all nodes")
	f.IntVar(&r.MaxUnavailable, "max-unavailable", 0, "nodes of a domain that may be disrupted at a time, by all rollouts and machines together; 0 leaves that to each rollout, and has machines go one at a time")
	f.BoolVar(&r.NodeMaintenance, "node-maintenance", false,
		"carry out NodeMaintenance objects: their definition and rights are in manifests/crds and manifests/node-maintenance")
	f.BoolVar(&r.EvictionRequests, "eviction-requests", false, "do the work of Kubernetes' evictionrequest-controller and "+
		"of its default responder; only where the API server serves lifecycle.k8s.io/v1alpha1, and no other program does it")
	r.Machines.addFlags(f)
	r.Agents.addFlags(f)
	f.DurationVar(&r.Stop, "stop-timeout", 10*time.Second, "how long work that is under way may take to end after SIGTERM")
}

// Validate says what is wrong with the values, all of it, joined, and reads the files.
func (r *Run) Validate() error {
	errs := []error{r.validateDomains(), r.validateNames()}
	need := func(ok bool, flag string, value any, want string) {
		if !ok {
			errs = append(errs, &FlagError{Flag: flag, Value: fmt.Sprint(value), Want: want})
		}
	}
	need(r.Lease >= minLease, "lease-duration", r.Lease, "must be at least "+minLease.String())
	need(r.Stop > 0, "stop-timeout", r.Stop, "must be more than 0, such as 10s")
	need(r.MaxUnavailable >= 0, "max-unavailable", r.MaxUnavailable, "must be a number of nodes, or 0 for no bound but those of rollouts")
	need(r.Evictions > 0, "rate", r.Evictions, "must be more than 0")
	_, port, err := net.SplitHostPort(r.Listen)
	need(err == nil && port != "", "listen", r.Listen, "must be an address such as 127.0.0.1:8473 or :8473")
	errs = append(errs, r.validatePage(), r.Machines.validate(r.Domains), r.Agents.validate(r.Namespace), r.loadPolicies())
	return errors.Join(errs...)
}

// validatePage keeps the page, which asks nobody who they are, to those who reach the process itself.
func (r *Run) validatePage() error {
	var errs []error
	if r.Page != "" {
		host, port, err := net.SplitHostPort(r.Page)
		ip, parsed := netip.ParseAddr(host)
		if err != nil || port == "" || host != "localhost" && (parsed != nil || !ip.IsLoopback()) {
			errs = append(errs, &FlagError{
				Flag: "page-bind-address", Value: r.Page,
				Want: "must be a loopback address such as 127.0.0.1:8474: the page asks nobody who they are; reach it by kubectl port-forward, or by a proxy in the pod that does ask",
			})
		}
	}
	for _, h := range r.PageHosts {
		if why := validation.IsDNS1123Subdomain(strings.ToLower(h)); len(why) > 0 {
			errs = append(errs, &FlagError{Flag: "page-hosts", Value: h, Want: "must be a name without a port: " + strings.Join(why, "; ")})
		}
	}
	if len(r.PageName) > longestPageName || strings.ContainsFunc(r.PageName, func(c rune) bool { return !unicode.IsPrint(c) }) {
		errs = append(errs, &FlagError{Flag: "page-name", Value: r.PageName, Want: fmt.Sprintf("must be of characters that can be seen, %d bytes at most, such as prod-eu-1", longestPageName)})
	}
	if r.Page == "" && r.PageName != "" {
		errs = append(errs, &FlagError{Flag: "page-name", Value: r.PageName, Want: "must be empty without --page-bind-address"})
	}
	if r.Page == "" && len(r.PageHosts) > 0 {
		errs = append(errs, &FlagError{Flag: "page-hosts", Value: strings.Join(r.PageHosts, ","), Want: "must be empty without --page-bind-address"})
	}
	return errors.Join(errs...)
}

func (r *Run) validateDomains() error {
	var errs []error
	if len(r.Domains) == 0 {
		errs = append(errs, &FlagError{Flag: "domains", Want: "must name at least one, such as " + v1alpha1.DefaultDomain})
	}
	for i, d := range r.Domains {
		if why := validation.IsDNS1123Subdomain(d); len(why) > 0 {
			errs = append(errs, &FlagError{Flag: "domains", Value: d, Want: strings.Join(why, "; ")})
		}
		if slices.Contains(r.Domains[:i], d) {
			errs = append(errs, &FlagError{Flag: "domains", Value: d, Want: "must be named once"})
		}
	}
	return errors.Join(errs...)
}

func (r *Run) validateNames() error {
	var errs []error
	if why := validation.IsDNS1123Label(r.Namespace); len(why) > 0 {
		errs = append(errs, &FlagError{Flag: "namespace", Value: r.Namespace, Want: strings.Join(why, "; ")})
	}
	if why := validation.IsDNS1123Subdomain(r.Switch); len(why) > 0 {
		errs = append(errs, &FlagError{Flag: "switch", Value: r.Switch, Want: strings.Join(why, "; ")})
	}
	for _, c := range r.BadConditions {
		if why := validation.IsQualifiedName(c); len(why) > 0 {
			errs = append(errs, &FlagError{Flag: "bad-conditions", Value: c, Want: strings.Join(why, "; ")})
		}
	}
	return errors.Join(errs...)
}

func (r *Run) loadPolicies() error {
	var errs []error
	if r.PolicyFile != "" {
		p, err := drainsettings.LoadPolicy(r.PolicyFile)
		r.Policy = p
		errs = append(errs, err)
	}
	if r.ForcedFile != "" {
		p, err := drainsettings.LoadPolicy(r.ForcedFile)
		r.Forced = &p
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
