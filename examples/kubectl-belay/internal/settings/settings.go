// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	drainsettings "github.com/belayproject/belay/examples/internal/drain/settings"
	"github.com/belayproject/belay/rollout"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// A FlagError says which flag is wrong, its value, and what would be right.
type FlagError = drainsettings.FlagError

// Common is what every command is told.
type Common struct {
	drainsettings.Cluster
	Output string
}

// AddFlags adds the flags with their defaults.
func (c *Common) AddFlags(f *pflag.FlagSet) {
	c.Cluster.AddFlags(f)
	f.StringVarP(&c.Output, "output", "o", drainsettings.FormatText, "text or json; with json, standard output holds the report alone")
}

// JSON reports whether a program reads the result.
func (c *Common) JSON() bool { return c.Output == drainsettings.FormatJSON }

// Validate says what is wrong with the values.
func (c *Common) Validate() error {
	if c.Output != drainsettings.FormatText && c.Output != drainsettings.FormatJSON {
		return wrong("output", c.Output, "must be text or json")
	}
	return nil
}

// Status is what status is told.
type Status struct {
	Common
	Watch bool
}

// AddFlags adds the flags with their defaults.
func (s *Status) AddFlags(f *pflag.FlagSet) {
	f.BoolVarP(&s.Watch, "watch", "w", false, "show each change until the rollout is completed, or does not go on by itself")
	s.Common.AddFlags(f)
}

// Controller is what the controller was told, which no object says: the flags of examples/controller of the same names.
type Controller struct {
	// MaxUnavailable bounds a domain; 0 leaves that to each rollout. OwnNode has its turn last; empty means that no node has.
	MaxUnavailable int
	OwnNode        string
	// BadConditions are further conditions of Nodes that are bad when True.
	BadConditions []string
}

// AddFlags adds the flags with their defaults.
func (c *Controller) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&c.MaxUnavailable, "max-unavailable", 0, "as the controller has it: nodes of a domain that may be disrupted at a time; 0 leaves that to each rollout")
	f.StringVar(&c.OwnNode, "own-node", "", "as the controller has it: the node that it runs on, which has its turn last")
	f.StringSliceVar(&c.BadConditions, "bad-conditions", nil, "as the controller has it: further conditions of Nodes that are bad when True, separated by commas")
}

// Validate says what is wrong with the values.
func (c *Controller) Validate() error {
	if c.MaxUnavailable < 0 {
		return wrong("max-unavailable", c.MaxUnavailable, "must be a number of nodes, or 0 for no bound but those of rollouts")
	}
	return nil
}

// Why is what why is told.
type Why struct {
	Common
	Controller
	Rollout string
}

// AddFlags adds the flags with their defaults.
func (s *Why) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Rollout, "rollout", "", "the rollout that is meant; empty means all that select the node")
	s.Controller.AddFlags(f)
	s.Common.AddFlags(f)
}

// Validate says what is wrong with the values, all of it.
func (s *Why) Validate() error {
	return drainsettings.Usage(errors.Join(s.Common.Validate(), s.Controller.Validate()))
}

// Plan is what plan is told.
type Plan struct {
	Common
	Controller
	File, Revision                  string
	Cycle, WorstCycle, ApproveAfter time.Duration
	AssumeAgents, All               bool
}

// AddFlags adds the flags with their defaults.
func (s *Plan) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&s.File, "filename", "f", "", "a Rollout in YAML or JSON to plan, whether it is in the cluster or not")
	f.StringVar(&s.Revision, "revision", "", "plan as if the rollout named this Revision")
	f.DurationVar(&s.Cycle, "cycle", 0, "how long a node takes, as expected; 0 means the median of this rollout so far, or what it takes at worst")
	f.DurationVar(&s.WorstCycle, "worst-cycle", 0, "how long a node takes at worst; 0 means what the rollout says, or 19 of 20 nodes have taken so far")
	f.DurationVar(&s.ApproveAfter, "approve-after", 0, "how long a stage that needs an approval waits for it; 0 means that nobody approves")
	f.BoolVar(&s.AssumeAgents, "assume-agents", false, "plan as if every node had an agent that has spoken")
	f.BoolVar(&s.All, "all", false, "show all turns, not the first ones alone")
	s.Controller.AddFlags(f)
	s.Common.AddFlags(f)
}

// Validate says what is wrong with the values, all of it.
func (s *Plan) Validate() error {
	errs := []error{s.Common.Validate(), s.Controller.Validate()}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"cycle", s.Cycle}, {"worst-cycle", s.WorstCycle}, {"approve-after", s.ApproveAfter}} {
		if d.value < 0 {
			errs = append(errs, wrong(d.flag, d.value, "must not be negative; such as 10m"))
		}
	}
	if s.WorstCycle > 0 && s.WorstCycle < s.Cycle {
		errs = append(errs, wrong("worst-cycle", s.WorstCycle, "must be at least --cycle, "+s.Cycle.String()))
	}
	return drainsettings.Usage(errors.Join(errs...))
}

// History is what history is told.
type History struct {
	Common
	Diff string
	// From and To are the numbers in Diff, after Validate.
	From, To int64
}

// AddFlags adds the flags with their defaults.
func (s *History) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Diff, "diff", "", "two numbers of entries, such as 1,3: show in which fields their Revisions differ")
	s.Common.AddFlags(f)
}

// Validate says what is wrong with the values, and reads the numbers.
func (s *History) Validate() error {
	errs := []error{s.Common.Validate()}
	if s.Diff != "" {
		from, to, two := strings.Cut(s.Diff, ",")
		var bad, worse error
		s.From, bad = strconv.ParseInt(from, 10, 64)
		s.To, worse = strconv.ParseInt(to, 10, 64)
		if !two || bad != nil || worse != nil || s.From < 1 || s.To < 1 {
			errs = append(errs, wrong("diff", s.Diff, "must be two numbers of entries with a comma between them, such as 1,3"))
		}
	}
	return drainsettings.Usage(errors.Join(errs...))
}

// Verb is what a verb is told.
type Verb struct {
	Common
	Timeout time.Duration
	// Displace lets the verb take the place of a pause or an abort that nobody has answered yet.
	Displace bool
	// To is the entry to go back to; it goes with rollback.
	To int64
	// Do is the verb, Node the node of an acknowledge.
	Do   v1alpha1.Do
	Node string
}

// AddFlags adds the flags with their defaults.
func (s *Verb) AddFlags(f *pflag.FlagSet) {
	f.DurationVar(&s.Timeout, "timeout", time.Minute, "how long to wait for the answer of the controller; it may be carried out later all the same")
	if s.Do != v1alpha1.Do(rollout.Abort) {
		f.BoolVar(&s.Displace, "displace", false, "ask even if that takes the place of a pause or an abort that nobody has answered yet")
	}
	if s.Do == v1alpha1.DoRollback {
		f.Int64Var(&s.To, "to", 0, "the number of an entry of the history; 0 means the last one that was completed with something else")
	}
	s.Common.AddFlags(f)
}

// Validate says what is wrong with the values, all of it.
func (s *Verb) Validate() error {
	errs := []error{s.Common.Validate()}
	if s.Timeout <= 0 {
		errs = append(errs, wrong("timeout", s.Timeout, "must be more than 0, such as 1m"))
	}
	if s.To < 0 {
		errs = append(errs, wrong("to", s.To, "must be the number of an entry of the history, from 1 on"))
	}
	return drainsettings.Usage(errors.Join(errs...))
}

// Doctor is what doctor is told.
type Doctor struct {
	Common
	Namespace, Account string
	Patience           time.Duration
}

// AddFlags adds the flags with their defaults.
func (s *Doctor) AddFlags(f *pflag.FlagSet) {
	f.StringVarP(&s.Namespace, "namespace", "n", "belay-system", "namespace of the controller and its Leases")
	f.StringVar(&s.Account, "account", "", "user name of the controller; empty means the service account belay-controller in --namespace")
	f.DurationVar(&s.Patience, "patience", 10*time.Second, "how long the controller's Lease may take to be renewed; its own duration if that is longer")
	s.Common.AddFlags(f)
}

// Validate says what is wrong with the values, all of it, and completes them.
func (s *Doctor) Validate() error {
	errs := []error{s.Common.Validate()}
	if why := validation.IsDNS1123Label(s.Namespace); len(why) > 0 {
		errs = append(errs, wrong("namespace", s.Namespace, strings.Join(why, "; ")))
	}
	if s.Patience <= 0 {
		errs = append(errs, wrong("patience", s.Patience, "must be more than 0, such as 10s"))
	}
	if s.Account == "" {
		s.Account = "system:serviceaccount:" + s.Namespace + ":belay-controller"
	}
	return drainsettings.Usage(errors.Join(errs...))
}

func wrong(flag string, value any, want string) error {
	return drainsettings.Usage(&FlagError{Flag: flag, Value: fmt.Sprint(value), Want: want})
}

// Install is what install is told.
type Install struct {
	Common
	// CRDs leaves out everything but the definitions, DryRun stores nothing, Force takes over fields of other field managers.
	CRDs, DryRun, Force bool
	// Downgrade replaces what a newer version has installed.
	Downgrade bool
}

// AddFlags adds the flags with their defaults.
func (i *Install) AddFlags(f *pflag.FlagSet) {
	f.BoolVar(&i.CRDs, "crds", false, "apply the CustomResourceDefinitions alone")
	f.BoolVar(&i.DryRun, "dry-run", false, "have the API server check the objects, and store none")
	f.BoolVar(&i.Force, "force-conflicts", false, "take over fields that another field manager owns")
	f.BoolVar(&i.Downgrade, "downgrade", false, "replace what a newer belay has installed; what this one lacks is lost")
	i.Common.AddFlags(f)
}
