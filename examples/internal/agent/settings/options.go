// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"k8s.io/component-base/version"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/file"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/examples/internal/agent/probe"
	"github.com/belayproject/belay/examples/internal/kubeletpayload"
	"github.com/belayproject/belay/lkg"
)

// Options are those of the agent's Syncer on which its records and decisions depend: the same in every sub-command, so
// that what is foretold is what happens. Without an init config, Init is nil.
func (l *Local) Options() configsync.Options[*kubelet.Config] { return l.On(nil) }

// On is [Local.Options] with the store that keeps the state, and what the program of --prove-command says. Nil keeps
// nothing.
func (l *Local) On(store configsync.Store) configsync.Options[*kubelet.Config] {
	around := l.around()
	strict := kubeletpayload.Strict
	if program, _ := l.JudgingKubelet(); program != "" {
		strict = nil // the kubelet knows its fields
	}
	o := configsync.Options[*kubelet.Config]{
		Version: Version(),
		Key:     l.Key,
		Codec: kubelet.Codec(kubelet.CodecOptions{
			Trial: l.DefaultTrial, CrashLoopThreshold: l.Threshold, NeedsHealthz: slices.ContainsFunc(l.HealthURLs, probe.Moves),
			Strict: strict, Around: around, DropIn: l.ConfigDir != "",
		}),
		Bounds: lkg.Bounds{MinTrial: l.MinTrial, MaxTrial: l.MaxTrial},
	}
	if l.Own.Codec != nil {
		o.Codec = l.Own.Codec
	}
	o.Validators = append(o.Validators, l.Own.Validators...)
	o.Store, o.Binary = store, l.digestProgram()
	l.judge(&o, around)
	switch {
	case l.InitConfig == "":
	case l.ConfigDir != "":
		o.Init = func(context.Context) (configsync.Object, error) { return l.beneath() }
	default:
		o.Init = func(context.Context) (configsync.Object, error) { return file.Init(l.InitConfig, l.Key) }
	}
	return o
}

// IgnoredInit names the entries of an init directory that are not read: all but that of Key and the limits. A codec of
// the program's own may read more: then none are named, as where the init config can't be read.
func (l *Local) IgnoredInit() []string {
	if l.InitConfig == "" || l.Own.Codec != nil {
		return nil
	}
	o, err := file.Init(l.InitConfig, l.Key)
	if err != nil {
		return nil
	}
	read := []string{
		l.Key, configsync.KeyTrialDuration, configsync.KeyCrashLoopThreshold, configsync.KeyMinHealthyRun, configsync.KeyProbeDeadline,
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.Data)), func(name string) bool { return slices.Contains(read, name) })
}

// Version names the build of the agent: the release that was set at link time, or the module's version, or the commit.
// Beliefs about configs are kept apart by it, so a build that knows none of these is to be linked with one.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version.Get().GitVersion, info)
}

// versionOf is pure. info may be nil.
func versionOf(linked string, info *debug.BuildInfo) string {
	const unknown = "v0.0.0-unknown"
	switch {
	case linked != "" && !strings.HasPrefix(linked, "v0.0.0-master"):
		return linked
	case info == nil:
		return unknown
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	switch v := set["vcs.revision"]; {
	case v == "":
		return unknown
	case set["vcs.modified"] == "true":
		return "v0.0.0-" + v[:min(12, len(v))] + "-modified"
	default:
		return "v0.0.0-" + v[:min(12, len(v))]
	}
}
