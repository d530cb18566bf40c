// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belayproject/belay/machine/provider"
)

// verify believes the Node, not the spec, and of the Node only what it has said after the update.
func (p *pass) verify(u *Update) Decision {
	if i := p.s.Instance; i != nil && i.State != provider.Running && p.Can.Get {
		return p.restarted()
	}
	if !p.NodesKnown {
		return p.wait(StepVerifying, "the workload API doesn't answer", pollSlow)
	}
	if len(p.Nodes) == 0 {
		return p.verifying("no Node has the ProviderID")
	}
	n := p.Nodes[0]
	p.s.Node, p.s.Versions = &n.NodeRef, n.Versions
	want := p.Machine.Spec.Versions
	switch {
	case want.Kubelet != "" && n.Versions.Kubelet != want.Kubelet:
		return p.verifying(fmt.Sprintf("Node %q reports the kubelet %q, %q is wanted", n.Name, n.Versions.Kubelet, want.Kubelet))
	case want.Runtime.Name != "" && n.Versions.Runtime.Name != want.Runtime.Name,
		want.Runtime.Version != "" && n.Versions.Runtime.Version != want.Runtime.Version:
		return p.verifying(fmt.Sprintf("Node %q reports the runtime %v, %v is wanted", n.Name, n.Versions.Runtime, want.Runtime))
	}
	if d, waits := p.proof(u, n); waits {
		return d
	}
	if !n.Ready {
		return p.verifying(fmt.Sprintf("Node %q is not ready", n.Name))
	}
	p.s.asked(p.Machine.Spec.Desired, u.Digest)
	if i := p.s.Instance; i != nil && i.Digest != "" {
		next := *i
		next.Digest = u.Digest
		p.s.Instance = &next
	}
	p.s.Failure = nil
	return p.recall()
}

// restarted looks whether an instance that did not run does now.
func (p *pass) restarted() Decision {
	if p.backingOff() || p.Asked {
		d := p.verifying(unable(*p.s.Instance))
		d.After = max(p.NotBefore.Sub(p.Now), pollInstance)
		return d
	}
	return p.ask(StepVerifying, Action{Kind: Lookup, Token: p.s.Token})
}

// proof waits until the Node has said something since the update. A report of another boot or of other versions was made after it began to work. One of the same host
// may be of the kubelet of before, and come late: what the workload cluster itself has once the provider is done is noted, and another one has to follow. Clocks of
// two machines are not compared.
func (p *pass) proof(u *Update, n Node) (Decision, bool) {
	switch {
	case n.Beat.IsZero(), u.Before != "" && n.host() != u.Before:
		return Decision{}, false
	case u.Heard != n.report() && !p.NodesLive: // nothing was heard yet, or a cache says something else, which may be of before
		return p.ask(StepVerifying, Action{Kind: FindNodes}), true
	case u.Heard == "":
		u.Heard = n.report()
		d := p.unheard(n)
		d.Store = true
		return d, true
	case u.Heard == n.report():
		return p.unheard(n), true
	}
	return Decision{}, false
}

func (p *pass) unheard(n Node) Decision {
	d := p.verifying(fmt.Sprintf("Node %q has reported nothing since the update", n.Name))
	d.After = min(max(d.After, time.Second), pollInstance) // a report alone is no event
	return d
}

func (p *pass) verifying(why string) Decision {
	if f, over := p.timedOut(StepVerifying, or(p.Timeouts.Update, defaultUpdate), ReasonUpdateTimeout); over {
		p.s.Failure, p.s.Phase = f, PhaseFailed
	}
	return p.wait(StepVerifying, why, p.left(StepVerifying, or(p.Timeouts.Update, defaultUpdate)))
}

// host is what a Node says of its host, as a digest.
func (n Node) host() string {
	data, err := json.Marshal(struct {
		Boot     string
		Versions provider.Versions
	}{n.Boot, n.Versions})
	if err != nil {
		return "" // of words alone there is no error
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// report names the last one of a Node's kubelet.
func (n Node) report() string { return n.UID + " " + n.Beat.UTC().Format(time.RFC3339Nano) }
