// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/belayproject/belay/examples/internal/agent/probe"
	"github.com/belayproject/belay/lkg"
)

// A FlagError says which flag is wrong. Its text has the flag, its value and what would be right.
type FlagError struct {
	// Flag is without dashes; for the child's command it is "--".
	Flag string
	// Value is as given.
	Value string
	// Want completes "--flag=value: …".
	Want string
}

// Error is one line.
func (e *FlagError) Error() string {
	if e.Flag == "--" {
		return "command after --: " + e.Want
	}
	return fmt.Sprintf("--%s=%q: %s", e.Flag, e.Value, e.Want)
}

// ParseError turns what the flag parser says about a value into a FlagError; other errors are returned as they are.
func ParseError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	f := bad.GetFlag()
	want := map[string]string{
		"duration": "must be a duration, such as 10s or 5m", "int": "must be a whole number", "bool": "must be true or false",
	}[f.Value.Type()]
	if want == "" {
		return err
	}
	return &FlagError{Flag: f.Name, Value: bad.GetValue(), Want: want}
}

// problems gathers FlagErrors.
type problems []error

func (p *problems) need(ok bool, flag string, value any, want string) {
	if !ok {
		*p = append(*p, &FlagError{Flag: flag, Value: fmt.Sprint(value), Want: want})
	}
}

// positive checks a duration.
func (p *problems) positive(flag string, d time.Duration, example string) {
	p.need(d > 0, flag, d, "must be more than 0, such as "+example)
}

// order checks that low <= high.
func (p *problems) order(low, high string, l, h time.Duration) {
	p.need(l <= h, low, l, fmt.Sprintf("must not be more than --%s, which is %s", high, h))
}

// Validate says what is wrong with the values, all of it, joined.
func (l *Local) Validate() error {
	var p problems
	l.validate(&p)
	return errors.Join(p...)
}

func (l *Local) validate(p *problems) {
	p.need(l.Key != "", "key", l.Key, "must name an entry of a ConfigMap, such as kubelet")
	p.positive("min-trial", l.MinTrial, "1m")
	p.order("min-trial", "max-trial", l.MinTrial, l.MaxTrial)
	p.need(l.DefaultTrial >= l.MinTrial && l.DefaultTrial <= l.MaxTrial, "default-trial", l.DefaultTrial,
		fmt.Sprintf("must be between --min-trial and --max-trial, which are %s and %s", l.MinTrial, l.MaxTrial))
	p.need(l.Threshold >= 0 && l.Threshold <= lkg.MaxCrashLoopThreshold, "crash-loop-threshold", l.Threshold,
		fmt.Sprintf("must be between 0 and %d", lkg.MaxCrashLoopThreshold))
	for _, u := range l.HealthURLs {
		_, err := probe.New(u, nil)
		p.need(err == nil, "health-url", u, fmt.Sprintf("must be an http or https address, such as %s", probe.Default))
	}
	if l.InitConfig != "" {
		_, err := os.Stat(l.InitConfig)
		p.need(err == nil, "init-config", l.InitConfig, "must be a file or a directory that can be read: "+text(err))
	}
	l.validateJudges(p)
}

// text is an error's own words without the path, which the flag's value shows already.
func text(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return fmt.Sprint(err)
}

// Validate says what is wrong with the values, all of it, joined.
func (r *Run) Validate() error {
	var p problems
	r.validate(&p)
	r.validateSource(&p)
	r.validateRollouts(&p)
	r.validateChild(&p)
	r.validateCare(&p)
	p.positive("probe-interval", r.ProbeInterval, "10s")
	p.need(r.ProbeInterval < lkg.MaxElapsed, "probe-interval", r.ProbeInterval,
		fmt.Sprintf("must be less than %s: a longer pause between two probes isn't counted as healthy", lkg.MaxElapsed))
	p.positive("probe-timeout", r.ProbeTimeout, "5s")
	p.positive("backoff-min", r.BackoffMin, "1s")
	p.order("backoff-min", "backoff-max", r.BackoffMin, r.BackoffMax)
	p.positive("retry-min", r.RetryMin, "1s")
	p.order("retry-min", "retry-max", r.RetryMin, r.RetryMax)
	p.positive("grace", r.Grace, "30s")
	return errors.Join(p...)
}

// validateCare checks how a config is looked after once it is in use.
func (r *Run) validateCare(p *problems) {
	for _, u := range r.WantedURLs {
		_, err := probe.New(u, nil)
		p.need(err == nil, "wanted-health-url", u, fmt.Sprintf("must be an http or https address, such as %s", probe.Default))
	}
	p.need(r.AckFile == "" || filepath.IsAbs(r.AckFile), "ack-file", r.AckFile, "must be an absolute path, such as /run/belay-agent/ack")
	p.positive("ack-deadline", r.AckDeadline, "15m")
	p.need(r.OnDrift == DriftReport || r.OnDrift == DriftRepair, "on-drift", r.OnDrift, "must be report or repair")
	p.positive("drift-interval", r.DriftInterval, "30s")
}

// validateSource checks where the wanted config comes from and where the state goes.
func (r *Run) validateSource(p *problems) {
	const kinds = "must be nodeconfig, annotation, legacy, shadow, directory=PATH or none"
	dir, isDir := r.Directory()
	p.need(r.ofServer() || r.Source == SourceNone || isDir, "source", r.Source, kinds)
	p.need(!isDir || filepath.IsAbs(dir), "source", r.Source, "must name an absolute path after directory=")
	p.need(r.StateDir == "" || filepath.IsAbs(r.StateDir), "state-dir", r.StateDir, "must be an absolute path")
	p.need(r.Kubeconfig != "" || !r.Server(), "kubeconfig", r.Kubeconfig, "must name a file, because --source is "+r.Source)
	p.need(r.NodeName != "" || !r.Server() && r.Kubeconfig == "", "node-name", r.NodeName,
		"must be the name of this node, because the agent talks to the API server")
	p.files(&r.Local, r.Render)
}

// files checks the local config and where the one in use goes.
func (p *problems) files(l *Local, render string) {
	p.need(l.InitConfig != "", "init-config", l.InitConfig,
		"must name the config that the node was provisioned with: it is what is left when no other config works")
	p.validateTarget(l, render)
}

func (r *Run) validateChild(p *problems) {
	const want = "must be the program to supervise and its arguments, such as: -- /usr/bin/kubelet --config=/run/belay/kubelet.conf"
	p.need(len(r.Child) > 0 && r.Child[0] != "", "--", "", want)
	if len(r.Child) > 0 && r.Child[0] != "" {
		p.need(filepath.IsAbs(r.Child[0]), "--", r.Child[0],
			fmt.Sprintf("%q must be an absolute path, so that it doesn't depend on PATH", r.Child[0]))
		info, err := os.Stat(r.Child[0])
		p.need(err == nil && !info.IsDir() && info.Mode()&0o111 != 0, "--", r.Child[0],
			fmt.Sprintf("%q must be a program that can be executed", r.Child[0]))
	}
}
