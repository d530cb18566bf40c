// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// A phase is what was last ordered of an instance.
type phase string

const (
	on       phase = "On"
	off      phase = "Off"
	leaving  phase = "Leaving"
	retained phase = "Retained"
)

// A record is an instance as its file has it. Its parts are never changed: what differs is copied.
type record struct {
	Token      string         `json:"token"`
	ProviderID string         `json:"providerID,omitempty"`
	Owner      provider.Owner `json:"owner"`
	// Asked is the digest that its Create or Adopt had.
	Asked string `json:"asked"`
	wanted
	// Coming is what an update in place makes of it at Changed.
	Coming  *wanted   `json:"coming,omitempty"`
	Changed time.Time `json:"changed,omitzero"`

	Phase phase `json:"phase"`
	// Ready is when it runs, if it is on.
	Ready time.Time `json:"ready,omitzero"`
	// Stopped is when it has stopped, if it is off or leaving; Gone is when it has left, by Mode.
	Stopped time.Time     `json:"stopped,omitzero"`
	Gone    time.Time     `json:"gone,omitzero"`
	Mode    provider.Mode `json:"mode,omitempty"`
	// Until is that of the Delete with which it is leaving or was retained.
	Until time.Time `json:"until,omitzero"`
	// Stuck was made by half: it is Pending for ever. Fails breaks at its start.
	Stuck bool `json:"stuck,omitempty"`
	Fails bool `json:"fails,omitempty"`

	Disks []disk `json:"disks"`
	// From is the token whose disks it has taken over.
	From      string            `json:"from,omitempty"`
	Endpoint  string            `json:"endpoint,omitempty"`
	Bootstrap map[string]string `json:"bootstrap,omitempty"`
	Boots     int               `json:"boots"`
	Reboots   []string          `json:"reboots,omitempty"`
	Console   []string          `json:"console,omitempty"`
}

// wanted is what an instance is made of. Desired.Config is not kept: Config is what it says.
type wanted struct {
	Digest  string           `json:"digest"`
	Desired provider.Desired `json:"desired"`
	Config  Config           `json:"config"`
}

// A disk is one as its file and the record of its instance have it.
type disk struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	GiB  int64  `json:"gib"`
}

// diskFile is the file of a disk, with what was written on it.
type diskFile struct {
	disk
	Data []byte `json:"data,omitempty"`
}

// used is what is left of an instance: its token.
type used struct {
	Token   string `json:"token"`
	Cluster string `json:"cluster"`
}

const maxConsole = 100

// say adds a line to the console.
func (r *record) say(now time.Time, format string, args ...any) {
	line := now.UTC().Format(time.RFC3339Nano) + " " + fmt.Sprintf(format, args...)
	r.Console = append(slices.Clone(r.Console), line)
	r.Console = r.Console[max(0, len(r.Console)-maxConsole):]
}

// boot starts it.
func (r *record) boot(now time.Time) {
	r.Phase, r.Ready, r.Stopped = on, now.Add(milliseconds(r.Config.StartMilliseconds)), time.Time{}
	r.Boots++
	v := r.Desired.Versions
	r.say(now, "boot %d: image %s, kubelet %q, runtime %q %q", r.Boots, r.Config.Image, v.Kubelet, v.Runtime.Name, v.Runtime.Version)
}

// stop begins to stop it, if that has not begun.
func (r *record) stop(now time.Time) {
	if r.Phase == on {
		r.Phase, r.Stopped = off, now.Add(milliseconds(r.Config.StopMilliseconds))
		r.say(now, "stopping")
	}
}

// leave begins its end, or makes a more thorough one of it.
func (r *record) leave(now time.Time, mode provider.Mode, until time.Time) {
	if r.Until = until; mode == provider.Destroy || r.Mode == provider.Destroy {
		r.Until = time.Time{}
	}
	switch {
	case r.Phase == retained && mode == provider.Retain:
		return
	case r.Phase == leaving:
		if mode == provider.Destroy {
			r.Mode = mode
		}
		return
	}
	r.stop(now)
	from := now
	if r.Stopped.After(now) {
		from = r.Stopped
	}
	r.Phase, r.Mode, r.Gone = leaving, mode, from.Add(milliseconds(r.Config.ReleaseMilliseconds))
	r.Coming, r.Changed = nil, time.Time{}
}

// due reports whether time has made something else of it.
func (r *record) due(now time.Time) bool {
	return r.Phase == leaving && !now.Before(r.Gone) || r.Coming != nil && !now.Before(r.Changed)
}

// settle makes of it what time has made of it. Gone means that nothing is left.
func (r *record) settle(now time.Time) (gone bool) {
	if !r.due(now) {
		return false
	}
	if r.Coming != nil {
		r.wanted = *r.Coming
		r.Coming, r.Changed = nil, time.Time{}
		r.say(now, "updated in place to %s", r.Digest)
		return false
	}
	if r.Mode == provider.Destroy {
		return true
	}
	r.Phase, r.Mode, r.Gone = retained, "", time.Time{}
	return false
}

// state is what it does now, and why.
func (r *record) state(now time.Time) (provider.State, string) {
	switch {
	case r.Phase == retained:
		return provider.Retained, "its disks are kept"
	case r.Phase == leaving:
		return provider.Stopping, "it leaves with mode " + string(r.Mode)
	case r.Phase == off && now.Before(r.Stopped):
		return provider.Running, "it is being stopped"
	case r.Phase == off:
		return provider.Stopped, "it was stopped"
	case r.Stuck:
		return provider.Pending, "its disks were made, and it was not"
	case now.Before(r.Ready):
		return provider.Pending, "it is starting"
	case r.Fails:
		return provider.Broken, "its start has failed"
	case r.Coming != nil:
		return provider.Running, "it is being updated in place"
	}
	return provider.Running, ""
}

// instance is what callers see of it.
func (r *record) instance(now time.Time) provider.Instance {
	state, why := r.state(now)
	i := provider.Instance{
		Token: r.Token, ProviderID: r.ProviderID, Owner: r.Owner, State: state, Digest: r.Digest, Disks: r.disks(), Until: r.Until, Message: why,
	}
	if state == provider.Running {
		i.Addresses = []provider.Address{{Type: "InternalIP", Address: address(r.Token)}}
	}
	return i
}

func (r *record) disks() []provider.Disk {
	disks := make([]provider.Disk, len(r.Disks))
	for i, d := range r.Disks {
		disks[i] = provider.Disk{ID: d.ID, Bytes: d.GiB << 30}
	}
	return disks
}

// progress is how far its stop or its end is.
func (r *record) progress(now time.Time) provider.Progress {
	p := provider.Progress{Stopped: !now.Before(r.Stopped)}
	switch {
	case r.Phase == retained:
		p.Done, p.Stopped, p.Retained = true, true, r.disks()
	case r.Phase == off && p.Stopped:
		p.Done = true
	case !p.Stopped:
		p.Message, p.AfterSeconds = "it is being stopped", seconds(r.Stopped.Sub(now))
	default:
		p.Message, p.AfterSeconds = "what it holds is being given back", seconds(r.Gone.Sub(now))
	}
	return p
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// address is that of the instance of a token, in 10.0.0.0/8. Two have one in common with a chance of 1 in 16 million.
func address(token string) string {
	sum := sha256.Sum256([]byte(token))
	return fmt.Sprintf("10.%d.%d.%d", sum[0], sum[1], sum[2])
}
