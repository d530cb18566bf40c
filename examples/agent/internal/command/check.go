// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/examples/internal/kubeletpayload"
	"github.com/belayproject/belay/lkg"
)

// maxFile bounds what is read of a file, in bytes.
const maxFile = configsync.MaxObject

// futureUID stands for the UID that the API server will give: with one, an object counts as shared by nodes.
const futureUID = "to-be-created"

// Check judges a config without a node.
func Check(own settings.Parts) *cobra.Command {
	l := settings.Local{Own: own}
	var local bool
	var from string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Judge a config, or a ConfigMap that holds one, by the code that judges on a node",
		Args:  one("the file with the config"),
		Long: `Judge a config, or a ConfigMap that holds one, by the code that judges on a node.

An error is what a node refuses; the exit code is 1. A warning is what a node accepts and what harms it or its pods all the same. What could not be
checked here is said. The installed kubelet judges where --prove-kubelet names one, or one is in the PATH; as root on Linux it also starts, in a sandbox.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.Validate(); err != nil {
				return err
			}
			if path, err := exec.LookPath("kubelet"); err == nil && l.ProveKubelet == settings.ProveAuto {
				l.ProveKubelet = path
			}
			text, err := readFile(args[0])
			if err != nil {
				return err
			}
			if err := check(c.Context(), c.OutOrStdout(), &l, args[0], text, local); err != nil || local || l.FieldPolicy == "" {
				return err
			}
			return changes(c.Context(), c.OutOrStdout(), &l, args[0], text, from)
		},
	}
	l.AddRuleFlags(c.Flags())
	c.Flags().StringVar(&from, "from", "", "with --field-policy, the config that is changed; empty means --init-config")
	c.Flags().BoolVar(&local, "init", false, "judge it as the init config of one node, which may hold values of that node")
	return c
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes: no ConfigMap holds that", path, maxFile)
	}
	return text, err
}

func check(ctx context.Context, w io.Writer, l *settings.Local, path string, text []byte, local bool) error {
	o, err := objectOf(l.Key, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	o.UID = futureUID
	if local {
		o.UID = ""
	}
	limits, err := judge(ctx, l, o)
	undecided := errors.Is(err, configsync.ErrUndecided) && limits != (lkg.Limits{})
	if err != nil && !undecided {
		return fmt.Errorf("%s: %w", path, err)
	}
	verdict := "is good"
	if kubelet, _ := l.JudgingKubelet(); kubelet == "" && l.Prove.Command == "" {
		verdict = "can be read" // nothing here knows what its values do
	}
	fmt.Fprintf(w, "%s %s: trial %s, unexplained restarts tolerated: %d, digest %s\n",
		path, verdict, limits.Trial, limits.CrashLoopThreshold, o.Digest())
	for _, warning := range warningsOf(l, o) {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	if undecided {
		fmt.Fprintf(w, "not checked: %v\n", err)
	}
	for _, open := range l.NotChecked() {
		fmt.Fprintf(w, "not checked: %s\n", open)
	}
	return nil
}

// warningsOf are about what becomes of a config on this node; without an init config, about the config itself.
func warningsOf(l *settings.Local, o configsync.Object) []string {
	opts := l.Options()
	cfg, _, err := opts.Codec.Decode(l.Key, o)
	if err != nil || cfg == nil || len(cfg.Document) == 0 {
		return nil // a codec of the program's own
	}
	all := kubelet.Warnings(cfg.Document)
	if program, _ := l.JudgingKubelet(); program == "" || o.UID == "" {
		return all // the codec has compared the fields, or they are the node's own
	}
	if doc, err := configsync.Gate([]byte(o.Data[l.Key]), configsync.GateLimits{}); err == nil {
		if err := kubeletpayload.Strict(doc); err != nil {
			all = append(all, "this agent was built with an older kubelet's fields: "+err.Error())
		}
	}
	return all
}

// objectOf takes text as a ConfigMap if it says so, and otherwise as the config itself, of which the codec says what is
// wrong.
func objectOf(key string, text []byte) (configsync.Object, error) {
	var kind struct {
		Kind string `json:"kind"`
	}
	raw, err := configsync.Gate(text, configsync.GateLimits{Bytes: maxFile})
	if err == nil && json.Unmarshal(raw, &kind) == nil && kind.Kind == "ConfigMap" {
		return configsync.ParseObject(raw)
	}
	return configsync.Object{Data: map[string]string{key: string(text)}}, nil
}

// judge does what a node does with a config before it adopts it.
func judge(ctx context.Context, l *settings.Local, o configsync.Object) (lkg.Limits, error) {
	opts := l.Options()
	if o.UID != "" {
		for _, i := range opts.Inspectors {
			if err := i.Inspect(ctx, l.Key, o); err != nil {
				return lkg.Limits{}, err
			}
		}
	}
	cfg, limits, err := opts.Codec.Decode(l.Key, o)
	if err != nil {
		return limits, err
	}
	for _, v := range opts.Validators {
		if err := v.Validate(ctx, cfg); err != nil {
			return limits, err
		}
	}
	if err := limits.Validate(); err != nil {
		return limits, err
	}
	return opts.Bounds.Clamp(limits), proven(ctx, l, o)
}

// proven asks the kubelet and the program of --prove-command, which need a directory. The kubelet judges an init config
// too.
func proven(ctx context.Context, l *settings.Local, o configsync.Object) (err error) {
	program, _ := l.JudgingKubelet()
	if program == "" && (l.Prove.Command == "" || o.UID == "") {
		return nil
	}
	own := *l
	if own.StateDir, err = os.MkdirTemp("", "belay-agent-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own.StateDir)) }()
	if o.UID == "" {
		own.Prove.Command = ""
	}
	for _, p := range own.Options().Proofs {
		if err := p.Inspect(ctx, l.Key, o); err != nil {
			return err
		}
	}
	return nil
}

// changes says what the field policy says of the way from one config to another.
func changes(ctx context.Context, w io.Writer, l *settings.Local, path string, text []byte, from string) error {
	opts := l.Options()
	to, err := objectOf(l.Key, text)
	if err != nil {
		return err
	}
	var before configsync.Object
	switch {
	case from != "":
		if text, err = readFile(from); err == nil {
			before, err = objectOf(l.Key, text)
		}
	case opts.Init != nil:
		before, err = opts.Init(ctx)
	default:
		return nil // nothing to compare with
	}
	if err != nil {
		return err
	}
	disruption, err := opts.Changes.Judge([]byte(before.Data[l.Key]), []byte(to.Data[l.Key]))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = fmt.Fprintf(w, "disruption: %s\n", disruption)
	return err
}
