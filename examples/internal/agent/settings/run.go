// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/drift"
	"github.com/belayproject/belay/examples/internal/agent/probe"
	"github.com/belayproject/belay/internal/backoff"
	"github.com/belayproject/belay/lkg"
)

// The kinds of source, as the flag names them.
const (
	SourceNodeConfig = "nodeconfig"
	SourceAnnotation = "annotation"
	SourceNone       = "none"
	// SourceLegacy is spec.configSource of the Node, the field that API servers up to 1.25 kept.
	SourceLegacy = "legacy"
	// SourceDirectory is followed by "=" and the directory.
	SourceDirectory = "directory"
)

// What is done about a drift, as the flag names it.
const (
	DriftReport = "report"
	DriftRepair = "repair"
)

// Local is what every sub-command that reads the state needs to know.
type Local struct {
	// StateDir holds all state. Empty switches dynamic config off.
	StateDir string
	// InitConfig is the file, or the directory with a file named by Key, that the node was provisioned with.
	InitConfig string
	// Key is the entry of an object that holds the config.
	Key string
	// DefaultTrial and Threshold are the limits of a config that carries none.
	DefaultTrial time.Duration
	Threshold    int
	// MinTrial and MaxTrial bound the trial that a config asks for.
	MinTrial, MaxTrial time.Duration
	// HealthURLs are the addresses that must answer for a config to be promoted; those in braces are filled in.
	HealthURLs []string
	// ConfigDir is the drop-in directory of a kubelet whose own config is InitConfig; empty for one that reads what is
	// rendered.
	ConfigDir string
	// NodeConfig is the file with the config of this node alone, which is stronger than what nodes share.
	NodeConfig string
	// FieldPolicy is the file that says which fields may be changed, Pool the node's pool as it names it.
	FieldPolicy, Pool string
	// TrustedKeys is the directory with the public keys of those who sign configs; empty: no config needs a signature.
	TrustedKeys string
	// ProveKubelet names the kubelet that judges a config before it is adopted: ProveAuto, ProveNone or its path. Child is
	// the command that is supervised, which auto takes.
	ProveKubelet string
	Child        []string
	// Prove is the program that judges a config before it is adopted.
	Prove Prove
	// Own are the parts of the program itself. No flag sets them.
	Own Parts
}

// Parts are what a program adds to the agent.
type Parts struct {
	// Codec decodes configs in place of the agent's. Nil means the agent's.
	Codec configsync.Codec[*kubelet.Config]
	// Validators judge a config after those of the agent, Probes whether it works.
	Validators []configsync.Validator[*kubelet.Config]
	Probes     []configsync.Probe
}

// Reread is how often an agent looks whether its Node still has the condition that it has reported last: a fleet at
// rest asks the API server for nothing else.
const Reread = time.Hour

// Probing is how a config on trial is probed.
type Probing struct {
	// ProbeInterval and ProbeTimeout pace the probes.
	ProbeInterval, ProbeTimeout time.Duration
	// NodeProbes has a config on trial judged by what becomes of the node: see kubelet.NewProbes. It needs Kubeconfig.
	NodeProbes bool
	// WantedURLs are addresses that should answer, and decide nothing.
	WantedURLs []string
}

// Run is what the run sub-command needs besides.
type Run struct {
	Local
	Fleet
	Probing
	NodeName, Kubeconfig string
	// Source is one of the kinds above.
	Source string
	// Metrics is the address that serves /metrics; empty for none.
	Metrics string
	// Render is the file that the child reads its config from.
	Render string
	// AckFile names the file that acknowledges a config on trial; empty for none. AckDeadline is how long that waits for
	// it.
	AckFile     string
	AckDeadline time.Duration
	// OnDrift is what is done when the rendered file was changed by somebody else: report or repair. DriftInterval is the
	// time between looks.
	OnDrift       string
	DriftInterval time.Duration
	// BackoffMin and BackoffMax bound the pause before the child is started again.
	BackoffMin, BackoffMax time.Duration
	// RetryMin and RetryMax bound the pause after trouble with the API server.
	RetryMin, RetryMax time.Duration
	// Grace is how long the child may take to stop before it is killed.
	Grace time.Duration
}

// Defaults are the values of a command line that says nothing.
func Defaults() *Local {
	var l Local
	l.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	return &l
}

// AddFlags adds the flags with their defaults.
func (l *Local) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&l.StateDir, "state-dir", "", "directory for all state of the agent; empty switches dynamic config off")
	l.AddRuleFlags(f)
}

// AddRuleFlags adds only the flags by which a config is judged. Each sub-command on a node must have those of run.
func (l *Local) AddRuleFlags(f *pflag.FlagSet) {
	f.StringVar(&l.InitConfig, "init-config", "", "the config that the node was provisioned with: a file, or a directory with a file named by --key")
	f.StringVar(&l.ConfigDir, "config-dir", "", "drop-in directory of a kubelet that has --init-config as its --config: a config is put there as "+DropIn+" and taken away again, in place of --render")
	f.StringVar(&l.NodeConfig, "node-config", "", "file with the part of a config that belongs to this node, stronger than what nodes share; with --config-dir, lay it there")
	f.StringVar(&l.FieldPolicy, "field-policy", "", "file that says which fields a config may change on this node; empty means all")
	f.StringVar(&l.Pool, "pool", "", "pool of this node, as --field-policy names it")
	f.StringVar(&l.TrustedKeys, "trusted-keys", "", "directory with public keys, named ID.pem, one of which must have signed a config; empty means that none is signed")
	f.StringVar(&l.ProveKubelet, "prove-kubelet", ProveAuto, "kubelet that judges a config before it is adopted, in a sandbox: auto is the supervised program if it is named kubelet, none is none, else its path")
	l.Prove.addFlags(f)
	f.StringVar(&l.Key, "key", kubelet.Key, "entry of a ConfigMap that holds the config")
	f.DurationVar(&l.DefaultTrial, "default-trial", lkg.DefaultTrial, "trial of a config that asks for none")
	f.DurationVar(&l.MinTrial, "min-trial", time.Minute, "shortest trial that a config may ask for")
	f.DurationVar(&l.MaxTrial, "max-trial", 24*time.Hour, "longest trial that a config may ask for")
	f.IntVar(&l.Threshold, "crash-loop-threshold", 2, "unexplained restarts that a config on trial may cause, if it doesn't say: 0 to 10")
	f.StringArrayVar(&l.HealthURLs, "health-url", []string{probe.Default},
		"address that must answer with status 200 for a config to be promoted; may be given more than once; the parts in braces are taken from the config in use")
}

// AddFlags adds the flags with their defaults, those of Local included.
func (r *Run) AddFlags(f *pflag.FlagSet) {
	r.Local.AddFlags(f)
	r.Fleet.AddFlags(f)
	f.StringVar(&r.NodeName, "node-name", "", "name of this node")
	f.StringVar(&r.Kubeconfig, "kubeconfig", "", "kubeconfig of the API server")
	f.StringVar(&r.Source, "source", SourceNodeConfig, "where the wanted config is named: nodeconfig, annotation, legacy, shadow, directory=PATH or none")
	f.StringVar(&r.Metrics, "metrics-bind-address", "", "address that serves /metrics, such as 127.0.0.1:8474; empty means none. It has no authentication: names and UIDs of configs show")
	addRender(f, &r.Render)
	f.DurationVar(&r.ProbeInterval, "probe-interval", 10*time.Second, "time between two rounds of health probes")
	f.DurationVar(&r.ProbeTimeout, "probe-timeout", 5*time.Second, "longest time that a health probe may take")
	f.BoolVar(&r.NodeProbes, "node-probes", true,
		"with --kubeconfig, a config is promoted only if the Node is Ready and under no new pressure, "+
			"heartbeats reach the API server, the kubelet's API and the container runtime answer, and pods that ran before run")
	f.StringArrayVar(&r.WantedURLs, "wanted-health-url", nil, "address that should answer with status 200, as --health-url; what it says is shown, and decides nothing")
	f.StringVar(&r.AckFile, "ack-file", "", "file by whose content, the UID or the digest of a config, somebody acknowledges it; a config on trial waits for that. Empty means that none does")
	f.DurationVar(&r.AckDeadline, "ack-deadline", 15*time.Minute, "how long a config on trial waits for --ack-file, over all restarts, until it is rejected")
	f.StringVar(&r.OnDrift, "on-drift", DriftReport, "what is done when the rendered file was changed by somebody else: report or repair")
	f.DurationVar(&r.DriftInterval, "drift-interval", 30*time.Second, "time between two looks at the rendered file")
	f.DurationVar(&r.BackoffMin, "backoff-min", time.Second, "shortest pause before a child that ended is started again")
	f.DurationVar(&r.BackoffMax, "backoff-max", time.Minute, "longest pause before a child that ended is started again")
	f.DurationVar(&r.RetryMin, "retry-min", time.Second, "shortest pause after trouble with the source or a report")
	f.DurationVar(&r.RetryMax, "retry-max", 2*time.Minute, "longest pause after trouble with the source or a report")
	f.DurationVar(&r.Grace, "grace", 30*time.Second, "time that the child has to stop before it is killed")
}

// Retry returns the pauses after trouble.
func (r *Run) Retry() *backoff.Backoff {
	return &backoff.Backoff{First: r.RetryMin, Most: r.RetryMax}
}

// DriftPolicy is that of OnDrift.
func (r *Run) DriftPolicy() drift.Policy {
	if r.OnDrift == DriftRepair {
		return drift.Repair
	}
	return drift.Report
}

// StateFiles are those of the kubelet that is supervised.
func (r *Run) StateFiles() kubelet.StateFiles {
	files := kubelet.StateFiles{RootDir: kubelet.RootDir(r.Child)}
	if len(r.Child) > 0 {
		files.Flags = r.Child[1:]
	}
	return files
}

// Dynamic reports whether the node takes its config from anywhere but its own disk.
func (r *Run) Dynamic() bool { return r.Source != SourceNone && r.StateDir != "" }

// SwitchedOff says why a source is named and not looked at; empty where that is not so.
func (r *Run) SwitchedOff() string {
	if r.Dynamic() || r.Source == SourceNone {
		return ""
	}
	return "dynamic config is switched off here: --state-dir is empty"
}

// Directory is the directory of that kind of source; ok is false for the other kinds.
func (r *Run) Directory() (path string, ok bool) {
	return strings.CutPrefix(r.Source, SourceDirectory+"=")
}

// ProbesNode reports whether configs on trial are judged by what becomes of the node.
func (r *Run) ProbesNode() bool { return r.NodeProbes && r.Kubeconfig != "" }

// Server reports whether the source is at the API server.
func (r *Run) Server() bool {
	return r.Dynamic() && r.ofServer()
}

// ofServer reports whether the kind of source is one of the API server.
func (r *Run) ofServer() bool {
	return r.Source == SourceNodeConfig || r.Source == SourceAnnotation || r.Source == SourceLegacy || r.Source == SourceShadow
}
